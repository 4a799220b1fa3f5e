"""Cumulative products of matches, and whether they run along every path of a tree."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from .expressions import loads, names, walk
from .facts import Facts

_CUMULATIVE = m.Call(
    func=m.Attribute(attr=m.Name("cumprod") | m.Name("cummin") | m.Name("accumulate"))
)
_BEST = m.Call(func=m.Attribute(attr=m.Name("argmax") | m.Name("topk")))
_COMPARISON = m.Comparison() | m.Call(func=m.Attribute(attr=m.Name("eq")))


def cumulative_products(facts: Facts, logits: frozenset[str]) -> Iterator[cst.Call]:
    """The cumulative products over comparisons in which the target's tokens take part."""
    for site in facts.calls:
        if not m.matches(site.node, _CUMULATIVE):
            continue
        call = cst.ensure_type(site.node, cst.Call)
        parts = operands(call)
        compared = any(
            m.matches(node, _COMPARISON)
            for part in parts
            for expression in facts.expand(part, None)
            for node in walk(expression)
        )
        if compared and facts.behind(parts, None) & logits:
            yield call


def operands(call: cst.Call) -> list[cst.BaseExpression]:
    """What a method or a torch function is applied to, with its arguments."""
    function = cst.ensure_type(call.func, cst.Attribute)
    own = [] if m.matches(function.value, m.Name("torch") | m.Name("np")) else [function.value]
    return [*own, *(argument.value for argument in call.args)]


def enumerates_paths(facts: Facts, product: cst.Call) -> bool:
    """Whether the product runs along several paths of which the longest is then picked.

    The place of the greatest length is used to index something: acceptance chooses between
    root-to-leaf paths, whether they were listed by an index or drafted side by side.
    """
    holders = _holders(facts, product)
    best = {
        name
        for bind in facts.binds
        if any(m.matches(node, _BEST) for node in walk(bind.value))
        and (names(bind.value) & holders or _within(bind.value, product))
        for name in bind.targets
    }
    used = [load for bind in facts.binds for load in loads(bind.value)]
    used += [load for value in facts.returns for load in loads(value)]
    return any(load.index & best for load in used)


def _holders(facts: Facts, product: cst.Call) -> set[str]:
    """The names whose values come from the product."""
    held: set[str] = set()
    while True:
        before = len(held)
        for bind in facts.binds:
            if names(bind.value) & held or _within(bind.value, product):
                held |= bind.targets
        if len(held) == before:
            return held


def _within(expression: cst.CSTNode, node: cst.CSTNode) -> bool:
    return any(inner is node for inner in walk(expression))
