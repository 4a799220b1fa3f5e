"""Drafted tokens held against the target's, node by node, for all nodes at once."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from .expressions import Load, names, walk
from .facts import Facts, Loop, compares_values, comparison_sides

_AND = m.BitAnd() | m.And()
_AND_CALL = m.Call(func=m.Attribute(attr=m.Name("logical_and") | m.Name("bitwise_and")))


def matches_at(facts: Facts, node: cst.CSTNode, logits: frozenset[str]) -> Iterator[Load]:
    """The reads of the target's tokens, by an index, that a comparison holds against other tokens.

    `tokens == target.gather(1, parents)`: what is compared is equality, and of the two sides only
    one comes from the target.
    """
    if not isinstance(node, cst.Comparison | cst.Call) or not compares_values(node):
        return
    sides = comparison_sides(node)
    for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
        # One array compared with itself is a string search, not a verification.
        others = facts.behind([there], None)
        for load in facts.reads(here, None):
            if load.base & logits and load.index and not load.base & others:
                yield load


def matches_before(facts: Facts, logits: frozenset[str]) -> frozenset[str]:
    """Names that hold whether each node's token is what the target said at a looked-up place."""
    return frozenset(
        name
        for bind in facts.binds
        if not bind.recursive
        for node in walk(bind.value)
        for load in matches_at(facts, node, logits)
        if any(is_looked_up(facts, part) for part in load.index_nodes)
        for name in bind.targets
    )


def is_looked_up(facts: Facts, index: cst.CSTNode) -> bool:
    """Whether an index comes from an array: no slice, number, counter or range."""
    if isinstance(index, cst.Slice) or not names(index):
        return False
    counters = frozenset(name for loop in facts.loops if loop.counts for name in loop.index)
    for part in facts.expand(index, None):
        if names(part) & counters or any(m.matches(node, _COUNTED) for node in walk(part)):
            return False
    return True


_COUNTED = m.Call(
    func=m.Attribute(attr=m.Name("arange") | m.Name("program_id"))
    | m.Name("range")
    | m.Name("arange")
)


def conjuncts(facts: Facts, loop: Loop | None, value: cst.CSTNode) -> list[cst.CSTNode]:
    """The conditions that all hold where a value is true, through the names that stand for them."""
    found: list[cst.CSTNode] = []
    waiting, seen = [value], set[str]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation):
            if m.matches(node.operator, _AND):
                waiting += [node.left, node.right]
                continue
        elif m.matches(node, _AND_CALL):
            waiting += comparison_sides(node)
            continue
        found.append(node)
        if isinstance(node, cst.Name) and node.value not in seen:
            seen.add(node.value)
            waiting += [bind.value for bind in facts.bindings(node.value)]
    return found
