"""Several candidates per level, all carried on, are a drafted tree."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import is_constant, names, walk
from ..shapes.facts import Facts
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_TOPK = m.Call(func=m.Attribute(attr=m.Name("topk")))


class SiblingDrafting(Rule):
    """Each level drafts the top-k candidates of every node and hands all of them on.

    The indices of a top-k whose width is not fixed to one are collected level by level.
    """

    stage = Stage.DRAFTING
    supports = StageVerdict.TREE
    scope = Scope.DRAFTING

    def gate(self, outline: Outline) -> bool:
        return "topk" in outline.called and outline.loops > 0

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for bind in facts.binds:
            widths = [width for width in map(_width, walk(bind.value)) if width is not None]
            if any(_is_wide(width) for width in widths) and _collected(facts, bind.targets):
                yield self.at(
                    view,
                    bind.node,
                    "the top-k candidates of a level all become drafted tokens: more than one "
                    "candidate per depth is proposed",
                )

    FOUND = (
        Example(
            """
def propose(self, logits, levels):
    ids = torch.topk(logits, self.width[0], dim=-1).indices
    drafted = [ids]
    for level in range(levels):
        logits = self.model.compute_logits(self.model(ids))
        ids = torch.topk(logits, self.width[level + 1], dim=-1).indices.view(2, -1)
        drafted.append(ids)
    return drafted
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def propose(self, logits, steps):
    drafted = []
    for _ in range(steps):
        ids = logits.topk(1, dim=-1).indices
        drafted.append(ids)
    return drafted
"""
        ),
        Example(
            """
def choose(self, scores, budget):
    keep = scores.topk(budget).indices
    for row in range(4):
        self.mask[row] = keep
    return keep
"""
        ),
        Example(
            """
def scores(self, logits, k):
    values = []
    for row in range(4):
        best = logits[row].topk(k).values
        values.append(best)
    return values
"""
        ),
    )


def _width(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The `k` of a top-k whose indices are used."""
    if not (isinstance(node, cst.Attribute) and node.attr.value == "indices"):
        return None
    call = node.value
    if not (isinstance(call, cst.Call) and m.matches(call, _TOPK)):
        return None
    function = cst.ensure_type(call.func, cst.Attribute)
    place = 1 if m.matches(function.value, m.Name("torch")) else 0
    named = [arg.value for arg in call.args if arg.keyword and arg.keyword.value == "k"]
    plain = [arg.value for arg in call.args if arg.keyword is None]
    widths = named or plain[place : place + 1]
    return widths[0] if widths else None


def _is_wide(width: cst.BaseExpression) -> bool:
    return not is_constant(width) or (isinstance(width, cst.Integer) and int(width.value) > 1)


def _collected(facts: Facts, ids: frozenset[str]) -> bool:
    return any(
        not store.index_nodes and store.value is not None and names(store.value) & ids
        for store in facts.stores
    )
