"""Names and loads in an expression."""

from __future__ import annotations

import libcst as cst
import pytest

from ddtree.analyzers.shapes.expressions import (
    dotted,
    is_constant,
    loads,
    names,
    value_names,
    walk,
)


def expression(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", {"a"}),
        ("a + b[c]", {"a", "b", "c"}),
        ("a.b.c", {"a.b.c", "a.b", "a"}),
        ("self.parents[at]", {"self.parents", "self", "at"}),
        ("f(a, key=b)", {"a", "b"}),
        ("a.sum(b)", {"a", "b"}),
        ("torch.where(a, b, 0)", {"a", "b"}),
        ("tl.int32", set()),
        ("(a, [b], {c: d})", {"a", "b", "c", "d"}),
        ("a if b else c", {"a", "b", "c"}),
        ("1 + 2", set()),
    ],
)
def test_names(text: str, found: set[str]) -> None:
    assert names(expression(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a == b", set()),
        ("tl.where(a == b, c, d)", {"c", "d"}),
        ("x[a < b]", {"x"}),
        ("a + b", {"a", "b"}),
    ],
)
def test_values_leave_out_what_is_only_compared(text: str, found: set[str]) -> None:
    assert value_names(expression(text)) == found


@pytest.mark.parametrize(
    ("text", "chain"),
    [("a", "a"), ("a.b.c", "a.b.c"), ("a().b", None), ("a[0]", None), ("1", None)],
)
def test_dotted(text: str, chain: str | None) -> None:
    assert dotted(expression(text)) == chain


@pytest.mark.parametrize("text", ["1", "-1", "1.5", "'a'", "None", "True", "False"])
def test_constants(text: str) -> None:
    assert is_constant(expression(text))


@pytest.mark.parametrize("text", ["a", "-a", "f()", "a + 1", "[]"])
def test_not_constants(text: str) -> None:
    assert not is_constant(expression(text))


@pytest.mark.parametrize(
    ("text", "base", "index"),
    [
        ("x[i]", {"x"}, {"i"}),
        ("x[i, j + 1]", {"x"}, {"i", "j"}),
        ("self.links[at]", {"self.links", "self"}, {"at"}),
        ("tl.load(x_ptr)", {"x_ptr"}, set()),
        ("tl.load(x_ptr + i)", {"x_ptr"}, {"i"}),
        ("tl.load(x_ptr + row * stride + i, mask=m)", {"x_ptr"}, {"row", "stride", "i"}),
        ("x.gather(1, i)", {"x"}, {"i"}),
        ("torch.gather(x, 1, i)", {"x"}, {"i"}),
        ("torch.index_select(x, 0, i)", {"x"}, {"i"}),
        ("np.take_along_axis(x, i, 1)", {"x"}, {"i"}),
        ("children.get(token)", {"children"}, {"token"}),
        ("node.child", {".child"}, {"node"}),
    ],
)
def test_loads(text: str, base: set[str], index: set[str]) -> None:
    first = loads(expression(text))[0]

    assert first.base == base
    assert first.index == index


@pytest.mark.parametrize(
    "text", ["a", "a + b", "f(a)", "self.a", "torch.float32", "x.sum(1)", "x.get()"]
)
def test_no_loads(text: str) -> None:
    assert loads(expression(text)) == ()


def test_nested_loads_come_outermost_first() -> None:
    found = loads(expression("target[parents[at]]"))

    assert [(sorted(one.base), sorted(one.index)) for one in found] == [
        (["target"], ["at", "parents"]),
        (["parents"], ["at"]),
    ]


def test_loads_inside_comparisons_may_be_left_out() -> None:
    text = expression("tl.where(tokens[i] == target[at], child[i], 0)")

    assert len(loads(text)) == 3
    assert [one.base for one in loads(text, into_comparisons=False)] == [{"child"}]


def test_a_walk_is_in_source_order() -> None:
    seen = [node.value for node in walk(expression("a + f(b, c)[d]")) if isinstance(node, cst.Name)]

    assert seen == ["a", "f", "b", "c", "d"]
