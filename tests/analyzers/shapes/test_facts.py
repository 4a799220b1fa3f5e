"""What is collected from a function: bindings, stores, loops, conditions, and what follows."""

from __future__ import annotations

import pytest

from ddtree.analyzers.shapes.facts import Facts, comparison_sides, is_equality
from ddtree.analyzers.shapes.view import view_of_source


def facts(body: str, parameters: str = "x, y") -> Facts:
    """The facts of a function with this body."""
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return view_of_source(f"def f({parameters}):\n{indented}").facts


def test_loops_say_whether_they_count() -> None:
    body = """
for i in range(x): pass
for j in tl.static_range(0, x): pass
for k in prange(x): pass
for node in y: pass
while x: pass
"""
    found = facts(body)

    assert [sorted(loop.index) for loop in found.loops] == [["i"], ["j"], ["k"], ["node"], []]
    assert [loop.counts for loop in found.loops] == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("body", "carried"),
    [
        ("at = 0\nwhile x:\n    at = y[at]", {"at"}),
        ("while x:\n    x = y[x]", {"x"}),
        ("while x:\n    at = y[0]", set()),
        ("at = 0\nfor i in range(x):\n    here = at", set()),
        ("n = 0\nfor i in range(x):\n    n += 1\n    i = 3", {"n"}),
        ("a = b = 0\nfor i in range(x):\n    a, b = b, a", {"a", "b"}),
        ("path = []\nfor i in range(x):\n    path.append(i)", {"path"}),
    ],
)
def test_carried_names(body: str, carried: set[str]) -> None:
    found = facts(body)

    assert found.carried(found.loops[0]) == carried


def test_conditions_guard_what_is_below_them() -> None:
    found = facts("if x:\n    while y:\n        if x > 1:\n            z = 1\n    w = 2")
    guards = {next(iter(bind.targets)): len(bind.guards) for bind in found.binds}

    # A loop's own condition is a guard too.
    assert guards == {"z": 3, "w": 1}
    assert len(found.conditions) == 3


@pytest.mark.parametrize(
    ("body", "base", "index"),
    [
        ("x[y] = 1", {"x"}, {"y"}),
        ("x[y], z = 1, 2", {"x"}, {"y"}),
        ("x[y] += 1", {"x"}, {"y"}),
        ("tl.store(x + y * 2, 1)", {"x"}, {"y"}),
        ("x.append(y)", {"x"}, set()),
        ("x.index_copy_(0, y, z)", {"x"}, {"y"}),
        ("self.out[y] = 1", {"self.out", "self"}, {"y"}),
    ],
)
def test_stores(body: str, base: set[str], index: set[str]) -> None:
    (store,) = facts(body).stores

    assert store.base == base
    assert store.index == index


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("x += 1", True),
        ("x -= 1", True),
        ("x = x + 1", True),
        ("x = 1 + x", True),
        ("x = x + y", True),
        ("n = x + 1\nx = n", True),
        ("x *= 2", False),
        ("x = y[x]", False),
        ("x = x + y[x]", False),
        ("x = y", False),
    ],
)
def test_counting(body: str, counts: bool) -> None:
    found = facts(body)
    bind = found.bindings("x")[-1]

    assert found.counts(bind, "x") is counts


def test_comparisons_of_both_kinds() -> None:
    found = facts("a = x == y\nb = x.eq(y)\nc = x < y\nd = x.sum(y)")

    assert [is_equality(site.node) for site in found.compares] == [True, True, False]
    assert [len(comparison_sides(site.node)) for site in found.compares] == [2, 2, 2]


def test_exits_and_returns() -> None:
    found = facts("for i in x:\n    if i:\n        break\n    return i\nreturn")

    assert len(found.exits) == 3
    assert len(found.returns) == 1
    assert [bool(site.guards) for site in found.exits] == [True, False, False]


def test_a_function_that_calls_itself_is_a_round() -> None:
    found = facts("if x:\n    return f(y[x], y)")

    assert found.recursion is not None
    assert found.rounds == [found.recursion]
    assert "x" in found.carried(found.recursion)
    assert facts("return g(x)").recursion is None


def test_names_are_looked_behind() -> None:
    found = facts("a = x[y]\nb = a + 1\nc = b")
    (start,) = [bind.value for bind in found.binds if "c" in bind.targets]

    assert found.behind([start], None) == {"a", "b", "x", "y"}
    assert found.behind([start], None, stop=["a"]) == {"a", "b"}
    assert [load.base for load in found.reads(start, None)] == [{"x"}]


def test_within_a_loop_only_its_own_assignments_are_followed() -> None:
    found = facts("a = x[y]\nfor i in range(3):\n    b = a[i]\n    c = b")
    (start,) = [bind.value for bind in found.binds if "c" in bind.targets]

    assert found.behind([start], found.loops[0]) == {"a", "b", "i"}
    assert [load.base for load in found.reads(start, found.loops[0])] == [{"a"}]


def test_names_bound_to_each_other_end() -> None:
    found = facts("a = b\nb = a")

    assert found.behind([found.binds[0].value], None) == {"a", "b"}


def test_what_is_iterated_over_binds_the_variable() -> None:
    found = facts("for node in x:\n    z = node")
    (start,) = [bind.value for bind in found.binds if "z" in bind.targets]

    assert "x" in found.behind([start], None)
