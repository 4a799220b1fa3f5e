"""Which reductions read one element of an array, and which add or search."""

from __future__ import annotations

import pytest

from ddtree.analyzers.shapes.view import view_of_source

BODY = """
def f(said, here, W, tokens, parents):
    lanes = tl.arange(0, W)[None, :]
    hot = lanes == here
    left = tl.where(hot, said, 0)
    word = EXPRESSION
    return word
"""


def picked(expression: str) -> list[tuple[set[str], set[str]]]:
    """What is read, and by which names, in the expression that is bound to `word`."""
    facts = view_of_source(BODY.replace("EXPRESSION", expression)).facts
    (bind,) = facts.bindings("word")
    return [
        (set(load.base), set(load.index) - {"None"})
        for load in facts.loads(bind.value)
        if "here" in load.index
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "tl.sum(tl.where(lanes == here, said, 0))",
        "tl.sum(tl.where(here == lanes, said, 0), axis=0)",
        "tl.max(tl.where(lanes == here[:, None], said, -1))",
        "tl.min(tl.where(hot, said, W))",
        "tl.sum(said * hot.to(tl.int32))",
        "(said * (lanes == here)).sum(dim=-1)",
        "torch.where(lanes.eq(here), said, 0).sum(-1)",
        "said.where(hot, 0).sum(-1)",
        "said.masked_fill(lanes != here, 0).sum(1)",
        "(said * F.one_hot(here, W)).sum(-1)",
        "left.sum()",
        "int(tl.sum(left))",
    ],
)
def test_a_one_hot_mask_reads_one_element(expression: str) -> None:
    assert picked(expression) == [({"said"}, {"here"})]


@pytest.mark.parametrize(
    "expression",
    [
        "tl.min(tl.where((parents == here) & (tokens == said), lanes, W))",
        "tl.max(tl.where(parents == here, lanes, -1))",
        "tl.sum(tl.where(lanes < here, said, 0))",
        "tl.sum(tl.where(tokens == said, parents, 0))",
        "tl.where(lanes == here, said, 0)",
        "(said * here).sum()",
        "tl.sum(said)",
    ],
)
def test_other_reductions_read_nothing(expression: str) -> None:
    assert picked(expression) == []
