"""Attention scores masked by what says which rows are ancestors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.masking import CALLED, Masking
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class MaskedScores(Rule):
    """The scores of rows that are no ancestors are set to minus infinity.

    A mask that was made of a tree's parents decides, in the very function that has the products
    of queries and keys, which of them count: by filling, by selection, as a bias that is added, or
    as the mask of a fused product. A mask that is made and never gets here masks nothing, and
    neither does a matrix of zeros and infinities that is made of it and left lying.
    """

    stage = Stage.ATTENTION
    supports = StageVerdict.TREE
    scope = Scope.MASKED

    def gate(self, outline: Outline) -> bool:
        return bool(CALLED & outline.called or ast.MatMult in outline.operators)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for node in Masking(view).places():
            yield self.at(
                view,
                node,
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
def kernel(target_ptr, query, keys, row, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    seen = (tl.load(target_ptr + row) >> lane) & 1
    scores = tl.dot(query, keys)
    scores = tl.where(seen != 0, scores, float("-inf"))
    return tl.max(scores)
"""
        ),
        Example(
            """
def step(held, target_seen, top):
    held = tl.where(target_seen, held, float("-inf"))
    return tl.maximum(top, tl.max(held, 1))
"""
        ),
        Example(
            """
def step(scores, target_seen, top):
    scores = tl.where(target_seen, scores, float("-inf"))
    return tl.exp2(scores - top[:, None])
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
        Example(
            """
def kernel(query, keys, target_ptr, row, lane):
    scores = tl.zeros((16, 16), dtype=tl.float32)
    scores += tl.dot(query, keys)
    scores += tl.load(target_ptr + row * 16 + lane)
    return tl.max(scores, 1)
"""
        ),
        Example(
            """
def attend(query, keys, values, target_mask):
    scores = torch.einsum("hqd,hkd->hqk", query, keys)
    scores[:, ~target_mask] = -1e9
    return scores.softmax(-1) @ values
"""
        ),
        Example(
            """
def attend(query, key, value, target_seen):
    def visible(batch, head, row, column):
        return target_seen[batch, row, column]

    blocks = create_block_mask(visible, 1, 1, 64, 64)
    return flex_attention(query, key, value, block_mask=blocks)
"""
        ),
        Example(
            """
def plan(wrapper, starts, target_mask):
    wrapper.plan(starts, custom_mask=target_mask.flatten())
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
        Example(
            """
def as_bias(target_seen):
    return torch.zeros_like(target_seen, dtype=torch.float32).masked_fill(~target_seen, -torch.inf)
"""
        ),
        Example(
            """
def left_lying(query, keys, values, target_seen):
    scores = query @ keys.transpose(-1, -2)
    bias = torch.zeros_like(scores).masked_fill(~target_seen, float("-inf"))
    return scores.softmax(-1) @ values, bias
"""
        ),
        Example(
            """
def blank(query, keys, values, target_bias):
    scores = query @ keys.transpose(-1, -2)
    return torch.softmax(scores + torch.zeros_like(target_bias), dim=-1) @ values
"""
        ),
        Example(
            """
def as_words(target_mask, weights):
    return torch.where(target_mask, weights, float("-inf"))
"""
        ),
        Example(
            """
def kernel(query, keys, target_ptr, row, lane):
    bias = tl.load(target_ptr + row * 16 + lane)
    scores = tl.dot(query, keys)
    scores = tl.where(lane <= row, scores, float("-inf"))
    return tl.max(scores, 1)
"""
        ),
        Example(
            """
def counted(query, keys, values, target_mask):
    scores = query @ keys.transpose(-1, -2)
    length = target_mask.shape[0]
    scores = scores.masked_fill(torch.arange(length) > length, float("-inf"))
    return scores.softmax(-1) @ values
"""
        ),
        Example(
            """
def project(hidden, weight, target_mask):
    hidden = hidden @ weight
    rows = target_mask.sum(-1)
    return hidden, rows
"""
        ),
        Example(
            """
def nucleus(probabilities, target_logits, p):
    ordered = target_logits.sort(-1).values
    return ordered.masked_fill(ordered.softmax(-1).cumsum(-1) > p, 0.0)
"""
        ),
    )
