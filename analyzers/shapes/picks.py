"""Elements picked out by a mask that is true at one place: `tl.sum(tl.where(lanes == here, x, 0))`.

A kernel that holds a whole row in registers cannot index it, and reads `x[here]` this way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import libcst.matchers as m

from .expressions import MODULES, Load, dotted, names

if TYPE_CHECKING:
    from .facts import Facts

_REDUCTIONS = frozenset({"sum", "max", "min", "amax", "amin"})
_COUNTS = frozenset({"arange", "range"})
# What changes the type or the axes of an array, and no element.
_SAME = frozenset(
    {"to", "int", "long", "float", "bool", "view", "reshape", "expand", "unsqueeze", "astype"}
    | {"type", "squeeze", "expand_dims", "broadcast_to"}
)


def picks(facts: Facts) -> Iterator[tuple[int, Load]]:
    """The reductions of a function that read one element, by identity of the call."""
    for site in facts.calls:
        call = cst.ensure_type(site.node, cst.Call)
        name, operands = _called(call)
        if name in _REDUCTIONS and operands:
            for value in _meant(facts, operands[0]):
                for array, mask in _selected(value):
                    for place in _hot(facts, mask):
                        load = Load(call, names(array), names(place), (place,))
                        yield id(call), load


def _called(call: cst.Call) -> tuple[str, list[cst.BaseExpression]]:
    """The name of what is called, and its operands: a method's object comes first."""
    plain = [argument.value for argument in call.args if argument.keyword is None]
    if isinstance(call.func, cst.Attribute):
        own = [] if dotted(call.func.value) in MODULES else [call.func.value]
        return call.func.attr.value, [*own, *plain]
    return (call.func.value if isinstance(call.func, cst.Name) else ""), plain


def _selected(node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The array and the mask of an expression that leaves only some elements of an array."""
    if isinstance(node, cst.BinaryOperation) and m.matches(node.operator, m.Multiply()):
        yield node.left, node.right
        yield node.right, node.left
    if isinstance(node, cst.Call):
        name, operands = _called(node)
        if name == "where" and len(operands) == 3:
            method = isinstance(node.func, cst.Attribute) and node.func.value is operands[0]
            yield (operands[0], operands[1]) if method else (operands[1], operands[0])
        elif name in {"masked_fill", "multiply", "mul"} and len(operands) >= 2:
            yield operands[0], operands[1]


def _hot(facts: Facts, mask: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The place at which alone a mask is true, or, in `masked_fill`, false."""
    for value in _meant(facts, mask):
        if isinstance(value, cst.Comparison) and len(value.comparisons) == 1:
            same = m.Equal() | m.NotEqual()
            if m.matches(value.comparisons[0].operator, same):
                yield from _beside_lanes(facts, value.left, value.comparisons[0].comparator)
        elif isinstance(value, cst.Call):
            name, operands = _called(value)
            if name in {"eq", "ne"} and len(operands) == 2:
                yield from _beside_lanes(facts, operands[0], operands[1])
            elif name == "one_hot" and operands:
                yield operands[0]


def _beside_lanes(
    facts: Facts, left: cst.BaseExpression, right: cst.BaseExpression
) -> Iterator[cst.BaseExpression]:
    for lanes, place in ((left, right), (right, left)):
        if is_counted(facts, lanes) and not is_counted(facts, place):
            yield place


def is_counted(facts: Facts, node: cst.CSTNode) -> bool:
    """Whether an array holds consecutive numbers: `tl.arange(0, W)[None, :]`."""
    node = _same(node)
    if isinstance(node, cst.Name):
        made = facts.bindings(node.value)
        return bool(made) and all(
            bind.value is not node
            and not isinstance(_same(bind.value), cst.Name)
            and is_counted(facts, bind.value)
            for bind in made
        )
    if isinstance(node, cst.BinaryOperation) and m.matches(node.operator, m.Add() | m.Subtract()):
        return is_counted(facts, node.left) or is_counted(facts, node.right)
    return isinstance(node, cst.Call) and _called(node)[0] in _COUNTS


def _meant(facts: Facts, node: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """An expression, or what the name that it is was bound to."""
    inner = _same(node)
    yield inner
    if isinstance(inner, cst.Name):
        yield from (_same(bind.value) for bind in facts.bindings(inner.value))


def _same(node: cst.CSTNode) -> cst.CSTNode:
    """What an expression only reshapes or converts."""
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            name, operands = _called(node)
            if name not in _SAME or not operands:
                return node
            node = operands[0]
        elif isinstance(node, cst.Subscript) and all(
            m.matches(item.slice, m.Slice(lower=None, upper=None) | m.Index(value=m.Name("None")))
            for item in node.slice
        ):
            node = node.value
        else:
            return node
