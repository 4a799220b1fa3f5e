"""Which V2 speculators are refused because they never come by the hook."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ddtree.patches.runtime.refusals import Refused
from ddtree.patches.runtime.v2.speculators import check_speculator
from tests.patches import matrix, releases

FOLDER = "vllm/v1/worker/gpu/spec_decode"
# They choose among the candidates of all positions at once.
APART = {"DFlash2Speculator", "LiLiCorrSpeculator", "XPressSpeculator"}
# Methods that are refused by their name.
OTHERS = {"DSparkSpeculator", "ExtractHiddenStatesSpeculator", "NgramGPUSpeculator"}
V2 = [version for version in releases.VERSIONS if version >= "0.24"]


def skeletons(tree: Path) -> dict[str, type]:
    """A release's speculators with the code of their functions, which are never called."""
    nodes = {
        node.name: node
        for file in sorted((tree / FOLDER).rglob("*.py"))
        for node in ast.parse(file.read_bytes()).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Speculator")
    }
    made: dict[str, type] = {}

    def make(name: str) -> type:
        if name not in nodes:
            return object
        if name not in made:
            bases = tuple(make(ast.unparse(base)) for base in nodes[name].bases) or (object,)
            made[name] = type(name, bases, functions(nodes[name]))
        return made[name]

    return {name: make(name) for name in nodes}


def functions(node: ast.ClassDef) -> dict[str, Any]:
    """What the class defines, without decorators, annotations and defaults."""
    body = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    for one in body:
        one.decorator_list = []
        one.args.defaults = [ast.Constant(None) for _ in one.args.defaults]
    node.bases, node.keywords, node.decorator_list = [], [], []
    node.body = [*body] or [ast.Pass()]
    future = ast.parse("from __future__ import annotations").body
    module = ast.fix_missing_locations(ast.Module([*future, node], []))
    names: dict[str, Any] = {}
    exec(compile(module, "speculators", "exec"), names)
    return {one.name: names[node.name].__dict__[one.name] for one in body}


@pytest.mark.parametrize("version", V2)
def test_real_speculators(version: str) -> None:
    """In every release exactly those that never call the hooked function."""
    found = skeletons(releases.tree(version))
    refused = set()
    for name, kind in found.items():
        if name.startswith("Base") or name == "DraftModelSpeculator" or name in OTHERS:
            continue
        try:
            check_speculator(object.__new__(kind))
        except Refused:
            refused.add(name)
    assert refused == APART & set(found)
    assert {"DFlashSpeculator", "EagleSpeculator", "MTPSpeculator"} <= set(found)
    assert "dflash" in matrix.drafters(releases.tree(version), "v2")


def test_a_function_that_goes_on_to_the_replaced_one() -> None:
    """It is not called apart, and the refusal names the class."""

    class Stock:
        def sample_draft(self, *_: object) -> int:
            return 0

        def propose(self) -> int:
            return self.sample_draft()

    class Further(Stock):
        def propose(self) -> int:
            return super().propose()

    class Apart(Stock):
        def propose(self) -> int:
            return 1

    check_speculator(Stock())
    check_speculator(Further())
    with pytest.raises(Refused, match="Apart takes its tokens without sample_draft"):
        check_speculator(Apart())
    with pytest.raises(Refused, match="SimpleNamespace"):
        check_speculator(SimpleNamespace())
