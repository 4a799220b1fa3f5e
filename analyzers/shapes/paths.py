"""Cumulative products of matches, and whether they run along every path of a tree."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from .expressions import loads, names, walk
from .facts import Facts, compares_values, comparison_sides

_CUMULATIVE = m.Call(
    func=m.Attribute(attr=m.Name("cumprod") | m.Name("cummin") | m.Name("accumulate"))
)
_BEST = m.Call(func=m.Attribute(attr=m.Name("argmax") | m.Name("topk")))
_ORDERED = m.Comparison(
    comparisons=[
        m.ComparisonTarget(
            operator=m.LessThan() | m.LessThanEqual() | m.GreaterThan() | m.GreaterThanEqual()
        )
    ]
)
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


def enumerates_paths(facts: Facts, product: cst.Call, logits: frozenset[str]) -> frozenset[str]:
    """The names that hold the place of the longest of several paths along which a product runs.

    What that place selects is kept: acceptance chooses between root-to-leaf paths, whether they
    were listed by an index or drafted side by side. Empty if that is not so.
    """
    if not any(
        _holds_tokens(facts, node, logits)
        for part in operands(product)
        for expression in facts.expand(part, None)
        for node in walk(expression)
    ):
        return frozenset()
    best = _longest(facts, product)
    kept = [*facts.returns]
    for store in facts.stores:
        kept += [store.value] if isinstance(store.value, cst.BaseExpression) else []
    used = [load for value in kept for load in facts.reads(value, None)]
    return best if any(load.index & best for load in used) else frozenset()


def may_choose(facts: Facts, product: cst.Call) -> bool:
    """Whether the place of the greatest length is used as an index, for whatever."""
    best = _longest(facts, product)
    values = [*(bind.value for bind in facts.binds), *facts.returns]
    return any(load.index & best for value in values for load in loads(value))


def _longest(facts: Facts, product: cst.Call) -> frozenset[str]:
    """The names that hold the place of the greatest length."""
    holders = _holders(facts, product)
    return frozenset(
        name
        for bind in facts.binds
        if any(m.matches(node, _BEST) for node in walk(bind.value))
        and (names(bind.value) & holders or _within(bind.value, product))
        for name in bind.targets
    )


def _holds_tokens(facts: Facts, node: cst.CSTNode, logits: frozenset[str]) -> bool:
    """Whether drafted tokens are compared with the target's, or their probabilities are."""
    if not isinstance(node, cst.Comparison | cst.Call):
        return False
    sides = comparison_sides(node)
    if compares_values(node):
        said = [bool(facts.behind([side], None) & logits) for side in sides]
        sources = [frozenset(n for load in facts.reads(s, None) for n in load.base) for s in sides]
        return any(said) and not (sources[0] & sources[-1] & logits)
    # A probability is the target's for a drafted token, which itself is looked up by a path.
    return m.matches(node, _ORDERED) and any(
        load.base & logits and not token.base & logits and facts.reads(place, None)
        for side in sides
        for load in facts.reads(side, None)
        for index in load.index_nodes
        for token in facts.reads(index, None)
        for place in token.index_nodes
        if not isinstance(place, cst.Slice)
    )


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
