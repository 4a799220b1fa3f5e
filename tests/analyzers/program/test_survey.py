"""One pass over a function says which constructs it is made of."""

from __future__ import annotations

import ast

import pytest

from ddtree.analyzers.program.survey import Outline, Survey, survey


def surveyed(source: str) -> Survey:
    """The survey of the first function of a source."""
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return survey(node)


def outline(body: str) -> Outline:
    """The outline of a function with this body."""
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return surveyed(f"def f(x, y, self=None):\n{indented}").outline


def test_loops_are_counted() -> None:
    found = outline("for i in x:\n    while i:\n        pass\n[j for j in y]")

    assert (found.loops, found.fors) == (2, 1)


def test_what_stands_in_loops_is_told_apart() -> None:
    found = outline("z = x + y\nwhile x < 3:\n    x -= 1")

    assert ast.Sub in found.looped
    assert ast.Compare in found.looped
    assert ast.Add not in found.looped
    assert {ast.Add, ast.Sub, ast.Lt} <= found.operators


@pytest.mark.parametrize(
    ("call", "name"),
    [("g(x)", "g"), ("torch.topk(x)", "topk"), ("kernel[grid](x)", "kernel"), ("x()()", "")],
)
def test_called_names(call: str, name: str) -> None:
    assert name in outline(call).called


@pytest.mark.parametrize(
    ("body", "recursive"), [("return f(x)", True), ("self.f(x)", True), ("return g(x)", False)]
)
def test_recursion(body: str, recursive: bool) -> None:
    assert outline(body).recursive is recursive


@pytest.mark.parametrize(
    ("body", "moving"),
    [
        ("at = 0\nwhile x:\n    at = y[at]", True),
        ("while x:\n    x = x.next", True),
        ("for i in range(9):\n    y[i] = 0", False),
        ("at = y[0]\nreturn at", False),
        ("stack = [0]\nwhile stack:\n    stack.append(y[stack[-1]])", True),
    ],
)
def test_moving(body: str, moving: bool) -> None:
    assert outline(body).moving is moving


def test_mentions_are_in_source_order() -> None:
    found = surveyed("def f(x):\n    b = x.c\n    a = g(b)\n    return a\n")

    assert [name.id for name in found.names] == ["b", "x", "a", "g", "b", "a"]
    assert [one.attr for one in found.attributes] == ["c"]
    assert len(found.calls) == 1
    assert [store.lineno for store in found.stores] == [2, 3]
    assert len(found.returns) == 1


@pytest.mark.parametrize(
    ("loop", "bound"),
    [
        ("for a in x: ...", {("a", "x")}),
        ("for i, a in enumerate(x): ...", {("a", "x")}),
        ("for a, b in zip(x, y): ...", {("a", "x"), ("b", "y")}),
        ("for i, (a, b) in enumerate(zip(x, y)): ...", {("a", "x"), ("b", "y")}),
        ("for a, b in x: ...", {("(a, b)", "x")}),
        ("for i in range(x): ...", set()),
        ("[a for a in x]", {("a", "x")}),
    ],
)
def test_what_is_iterated_over_reaches_the_variables(
    loop: str, bound: set[tuple[str, str]]
) -> None:
    found = set()
    for store in surveyed(f"def f(x, y):\n    {loop}\n").stores:
        assert isinstance(store, ast.Assign)
        found.add((ast.unparse(store.targets[0]), ast.unparse(store.value)))

    assert found == bound
