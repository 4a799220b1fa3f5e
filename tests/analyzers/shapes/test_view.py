"""A function is cut out of its file, and nodes are found again in the file's lines."""

from __future__ import annotations

import ast

import libcst as cst
import libcst.matchers as m
import pytest

from ddtree.analyzers.shapes.view import FunctionView, view_of_source

FILE = '''"""A file with a café in front of the function."""


class Holder:
    @decorated[
        "over two lines"
    ]
    def method(self, x):
        total = 0
        for i in range(x):
            total += self.values[
                i
            ]
        while total: total = call(call(total))
        return total


async def later(x):
    for one in x:
        yield one
'''


def view(name: str) -> FunctionView:
    """The view of a function of the file."""
    for node in ast.walk(ast.parse(FILE)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return FunctionView(FILE.encode(), node, name)
    raise LookupError(name)


def nodes(name: str, matcher: m.BaseMatcherNode) -> list[cst.CSTNode]:
    """The nodes of a function that match, in source order."""
    return list(m.findall(view(name).tree, matcher))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("method", cst.For, [(10, 9, 13)]),
        ("method", cst.While, [(14, 9, 14)]),
        ("method", cst.Assign, [(9, 9, 9), (14, 22, 14)]),
        ("method", cst.AugAssign, [(11, 13, 13)]),
        ("method", cst.Call, [(10, 18, 10), (14, 30, 14), (14, 35, 14)]),
        ("later", cst.For, [(19, 5, 20)]),
    ],
)
def test_spans(name: str, kind: type[cst.CSTNode], expected: list[tuple[int, int, int]]) -> None:
    seen = view(name)
    found = m.findall(seen.tree, m.MatchIfTrue(lambda node: type(node) is kind))

    assert sorted(seen.span(node) for node in found) == expected


def test_decorators_are_left_out() -> None:
    assert view("method").tree.decorators == ()
    assert view("method").tree.name.value == "method"


def test_facts_are_collected_once() -> None:
    seen = view("method")

    assert seen.facts is seen.facts
    assert len(seen.facts.loops) == 2


def test_the_first_function_of_a_source() -> None:
    seen = view_of_source("x = 1\ndef f(target): ...\ndef g(): ...", ["target"])

    assert seen.symbol == "f"
    assert seen.logits == {"target"}


def test_a_source_without_a_function() -> None:
    with pytest.raises(ValueError, match="expected a function"):
        view_of_source("x = 1")
