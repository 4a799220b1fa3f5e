"""Attention scores masked by what says which rows are ancestors."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import walk
from ..shapes.facts import Facts
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_FILLS = frozenset({"masked_fill", "masked_fill_"})
_ATTENDS = frozenset({"scaled_dot_product_attention"})
_SOFTMAX = frozenset({"softmax", "exp", "exp2"})
_SUM = m.BinaryOperation(operator=m.Add())
_INFINITE = m.SimpleString(m.MatchRegex(r"[\"']-?inf(inity)?[\"']")) | m.Attribute(
    attr=m.Name("inf") | m.Name("min") | m.Name("NINF")
)


class MaskedScores(Rule):
    """The scores of rows that are no ancestors are set to minus infinity.

    A mask that was made of a tree's parents decides, in the very function that attends, which
    scores count: by filling, by selection, as the mask of a fused product, or as a bias that is
    added before the softmax. A mask that is made and never gets here masks nothing.
    """

    stage = Stage.ATTENTION
    supports = StageVerdict.TREE
    scope = Scope.MASKED

    def gate(self, outline: Outline) -> bool:
        return bool((_FILLS | _ATTENDS | _SOFTMAX | {"where"}) & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for site in view.facts.calls:
            call = cst.ensure_type(site.node, cst.Call)
            if any(_reads(view.facts, part, view.logits) for part in _masks(call)):
                yield self.at(
                    view,
                    call,
                    "the mask of the tree decides which scores count: draft rows attend to their "
                    "ancestors only",
                )
                return

    FOUND = (
        Example(
            """
def attend(query, keys, values, target_mask):
    scores = query @ keys.transpose(-1, -2)
    scores = scores.masked_fill(~target_mask, float("-inf"))
    return scores.softmax(-1) @ values
"""
        ),
        Example(
            """
def kernel(target_ptr, scores_ptr, row, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    seen = (tl.load(target_ptr + row) >> lane) & 1
    scores = tl.load(scores_ptr + lane)
    scores = tl.where(seen != 0, scores, float("-inf"))
    return tl.max(scores)
"""
        ),
        Example(
            """
def attend(query, keys, values, target_bias):
    return scaled_dot_product_attention(query, keys, values, attn_mask=target_bias)
"""
        ),
        Example(
            """
def attend(query, keys, values, target_bias):
    scores = query @ keys.transpose(-1, -2)
    return torch.softmax(scores + target_bias, dim=-1) @ values
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def attend(query, keys, values, target_mask):
    return scaled_dot_product_attention(query, keys, values, is_causal=True)
"""
        ),
        Example(
            """
def attend(query, keys, values, target_mask):
    row = torch.arange(query.shape[0])
    scores = query @ keys.transpose(-1, -2)
    scores = scores.masked_fill(row[None, :] > row[:, None], float("-inf"))
    return scores.softmax(-1) @ values
"""
        ),
        Example(
            """
def pad(table, target_mask):
    return table.masked_fill(~target_mask, 0)
"""
        ),
        Example(
            """
def choose(target_mask, kept, drafted):
    return torch.where(target_mask, kept, drafted)
"""
        ),
    )


def _masks(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """The arguments by which a call masks scores."""
    name = _name(call.func)
    plain = [argument.value for argument in call.args if argument.keyword is None]
    words = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    if name in _FILLS and len(call.args) == 2 and _is_infinite(call.args[1].value):
        yield call.args[0].value
    elif name == "where" and len(plain) == 3 and any(map(_is_infinite, plain[1:])):
        yield plain[0]
    elif name in _ATTENDS:
        yield from plain[3:4]
        yield from (words[word] for word in ("attn_mask", "attn_bias") if word in words)
    elif name in _SOFTMAX and plain and m.matches(plain[0], _SUM):
        biased = cst.ensure_type(plain[0], cst.BinaryOperation)
        yield from (biased.left, biased.right)


def _name(function: cst.BaseExpression) -> str:
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


def _is_infinite(value: cst.BaseExpression) -> bool:
    return any(m.matches(node, _INFINITE) for node in walk(value))


def _reads(facts: Facts, part: cst.BaseExpression, masks: frozenset[str]) -> bool:
    return bool(facts.behind([part], None) & masks)
