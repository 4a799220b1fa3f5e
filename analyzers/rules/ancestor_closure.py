"""A node survives when all of its ancestors match: the mask itself decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import loads, names, walk
from ..shapes.facts import Facts, comparison_sides, is_equality
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_ALL = m.Call(func=m.Attribute(attr=m.Name("all") | m.Name("amin") | m.Name("prod")))
_EXCEPT = m.UnaryOperation(operator=m.BitInvert())


class AncestorClosure(Rule):
    """A node is accepted when the matches of all its ancestors hold, by one reduction.

    Matches of drafted tokens with the target's token at each node's parent are combined with a
    matrix of ancestors (`matched | ~ancestors`) and reduced by `all`. No loop is needed.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        reduced = {"all", "amin", "prod"} & outline.called
        return bool(reduced) and {ast.Eq, ast.Invert, ast.BitOr} <= outline.operators

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for site in facts.calls:
            call = cst.ensure_type(site.node, cst.Call)
            if m.matches(call, _ALL) and _closes(facts, call, view.logits):
                yield self.at(
                    view,
                    call,
                    "a node survives when the matches of all its ancestors hold: any root-to-node "
                    "path can be accepted",
                )

    FOUND = (
        Example(
            """
def accept(parents, ancestors, tokens, target_ids):
    hit = tokens == target_ids.gather(1, parents)
    return (hit[:, None, :] | ~ancestors).all(dim=-1)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def accept(valid, tokens, target_ids):
    hit = tokens == target_ids
    return (hit | ~valid).all(dim=-1)
"""
        ),
        Example(
            """
def masked(rows, tokens, mask, target_ids):
    same = tokens == tokens.gather(1, rows)
    return (same | ~mask).all(dim=-1), target_ids
"""
        ),
    )


def _closes(facts: Facts, call: cst.Call, logits: frozenset[str]) -> bool:
    reduced = cst.ensure_type(call.func, cst.Attribute).value
    parts = facts.expand(reduced, None)
    opened = any(
        isinstance(node, cst.BinaryOperation)
        and m.matches(node.operator, m.BitOr())
        and (m.matches(node.left, _EXCEPT) or m.matches(node.right, _EXCEPT))
        for part in parts
        for node in walk(part)
    )
    return opened and any(
        _compares_at_parents(facts, node, logits) for part in parts for node in walk(part)
    )


def _compares_at_parents(facts: Facts, node: cst.CSTNode, logits: frozenset[str]) -> bool:
    """Whether drafted tokens are compared with target tokens that are gathered by an index."""
    if not isinstance(node, cst.Comparison) or not is_equality(node):
        return False
    sides = comparison_sides(node)
    for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
        others = facts.behind([there], None)
        for load in loads(here):
            if load.base & logits and names(load.node) - load.base and not load.base & others:
                return True
    return False
