"""What a bundle's `apply.py` does: this machine's modules, and the plan that lies beside them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..analyzers.errors import ConflictError, DdtreeError
from ..analyzers.install.names import printable
from . import perform
from .errors import RecoveryPending
from .perform import Applied, Options, Outcome, Reverted
from .plan import Plan, plan_id, sha256
from .recipe import Anchor
from .status import Status
from .way import Way

PLAN = "plan.json"
MODULES, OLD, NEW, BESIDE = "modules", "old", "new", "beside"
_INTERRUPTED = 130


def main(here: Path, words: Sequence[str], usage: str) -> int:
    """Run the command line of the bundle in a folder; the exit code."""
    flags = {word for word in words if word.startswith("-")}
    sites = [word for word in words if not word.startswith("-")]
    if len(sites) > 1 or flags - {"--revert", "--force"}:
        return _say(2, usage.strip())
    action = perform.revert if "--revert" in flags else perform.apply
    try:
        facts = _read(here)
        options = _options(here, facts, sites[0] if sites else None, force="--force" in flags)
        return _say(0, _sentence(action(options), facts["plan"]))
    except DdtreeError as error:
        again = "; run it again" if isinstance(error, RecoveryPending) else ""
        return _say(error.exit_code, f"error: {error.found}; expected: {error.expected}{again}")
    except KeyboardInterrupt as interruption:
        said = f": {interruption}" if interruption.args else ""
        return _say(_INTERRUPTED, f"interrupted{said}; run it again, or with --revert to go back")


def _read(here: Path) -> dict[str, Any]:
    """The plan of a bundle.

    Raises:
        ConflictError: the bundle is damaged.
    """
    try:
        facts: dict[str, Any] = json.loads((here / PLAN).read_bytes())
        wrong = [str(here / name) for name in _damaged(here, facts)]
        if plan_id(facts["facts"], facts["edits"], facts["beside"]) != facts["plan"]:
            wrong.append(f"{here / PLAN}, whose plan is not {facts['plan']}")
    except (OSError, ValueError, TypeError, KeyError) as error:
        wrong = [f"{here / PLAN} ({error})"]
    if wrong:
        raise ConflictError(
            f"the bundle is damaged: {printable(', '.join(wrong))}",
            expected="the bundle as ddtree wrote it",
            hint="ddtree patch --bundle DIR",
        )
    return facts


def _damaged(here: Path, facts: dict[str, Any]) -> Iterator[str]:
    wanted = dict(facts["files"])
    for file, old, new in facts["edits"]:
        wanted |= {f"{OLD}/{file}": old, f"{NEW}/{file}": new}
    wanted |= {f"{BESIDE}/{path}": digest for path, digest in facts["beside"]}
    for name, digest in wanted.items():
        path = here / name
        if not path.is_file() or sha256(path.read_bytes()) != digest:
            yield name


def _options(here: Path, facts: dict[str, Any], site: str | None, *, force: bool) -> Options:
    edits = {file: before for file, before, _ in facts["edits"]}
    old = edits | facts["reads"]

    def edit(file: str, data: bytes, _: Sequence[Anchor]) -> bytes:
        if sha256(data) != old.get(file):
            raise ConflictError(
                f"not as expected: {file}",
                expected="the files that this bundle was made of",
                hint="ddtree patch --bundle DIR",
            )
        return (here / NEW / file).read_bytes() if file in edits else data

    return Options(
        site,
        None if site else Path(sys.executable),
        force=force,
        local_edits=bool(facts["local_edits"]),
        agree=_same(set(old)),
        edit=edit,
        beside={path: (here / BESIDE / path).read_bytes() for path, _ in facts["beside"]},
        shown=facts["plan"],
        known=old,
        way=Way.EDITS if edits else Way.PLUGIN,
    )


def _same(files: set[str]) -> Callable[[Plan | Status], None]:
    """Refuses a plan of other files than these."""

    def agree(about: Plan | Status) -> None:
        if isinstance(about, Plan) and set(about.sources) != files:
            raise ConflictError(
                f"vLLM {about.identity.version} is hooked in other files than this bundle has",
                expected="the release that this bundle was made of",
                hint="ddtree patch --bundle DIR",
            )

    return agree


def _sentence(outcome: Outcome, plan: str) -> str:
    if isinstance(outcome, Applied):
        return "\n".join([f"plan {plan}: patched", *(f"note: {note}" for note in outcome.notes)])
    if isinstance(outcome, Reverted):
        return f"plan {plan}: reverted: {outcome.sentence}"
    return "nothing to do"


def _say(code: int, text: str) -> int:
    print(text, file=sys.stderr if code else sys.stdout)
    return code
