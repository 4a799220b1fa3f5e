"""Which rows each row of a draft tree sees, how deep it is, and whether the tree is a chain."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch

from .. import checks
from . import reference, vectorised

__all__ = ["Ancestors", "Form", "ancestors", "dense", "words_for"]

Form = Literal["auto", "reference", "vectorised", "kernel"]
FORMS = ("auto", "reference", "vectorised", "kernel")
MAX_WORDS = 64


class Ancestors(NamedTuple):
    """What the attention of a draft tree needs to know.

    Attributes:
        visible: [R, N + 1, W] int64; bit `j % 64` of word `j // 64` of row `i` is set if and only
            if row `j` is row `i` or an ancestor of it. A padding row sees itself alone.
        depth: [R, N + 1] int32, distance to the root; 0 for the root and in padding.
        is_chain: [R] bool, whether every node follows the one before it, so that a causal mask is
            the tree's mask; true for a request without drafts.
    """

    visible: torch.Tensor
    depth: torch.Tensor
    is_chain: torch.Tensor


def words_for(nodes: int) -> int:
    """Words of 64 bits that hold the rows of a tree of `nodes` nodes and its root."""
    return nodes // 64 + 1


def ancestors(
    parents: torch.Tensor,
    count: torch.Tensor,
    *,
    words: int | None = None,
    form: Form = "auto",
) -> Ancestors:
    """Pack every row's path to the root into words, with its depth and the chain flag.

    Args:
        parents: [R, N] int32.
        count: [R] int32.
        words: W, for a buffer of fixed width; ceil((N + 1) / 64) when None. Words past the last
            row are 0.
        form: "auto" takes the kernel on a GPU and the vectorised form elsewhere.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above, or `words` is
            less than the tree needs or more than 64.

    Source: DDTree, Ringel & Romano 2026, arXiv 2604.12989, verification (ancestor-only mask).
    """
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    checks.tensor("parents", parents, (None, None), (torch.int32,))
    checks.tensor("count", count, (parents.shape[0],), (torch.int32,), parents.device)
    needed = words_for(parents.shape[1])
    words = needed if words is None else words
    if not needed <= words <= MAX_WORDS:
        raise ValueError(f"words: expected {needed} to {MAX_WORDS}, found {words}")
    if form == "reference":
        return Ancestors(*reference.ancestors(parents, count, words))
    if form == "vectorised" or (form == "auto" and not parents.is_cuda):
        return Ancestors(*vectorised.ancestors(parents, count, words))
    # A machine without a GPU may be without Triton.
    from . import kernel

    out = kernel.outputs(parents, words)
    if parents.shape[0] > 0:
        kernel.ancestors(out, parents, count, words)
    return Ancestors(*out)


def dense(visible: torch.Tensor, rows: int) -> torch.Tensor:
    """Unpack visibility words to a mask: [R, Q, W] int64 to [R, Q, rows] bool.

    Raises:
        ValueError: `visible` is not such a tensor, or its words do not hold `rows` rows.
    """
    checks.tensor("visible", visible, (None, None, None), (torch.int64,), contiguous=False)
    if not 0 <= rows <= visible.shape[2] * 64:
        raise ValueError(f"rows: expected 0 to {visible.shape[2] * 64}, found {rows}")
    return vectorised.dense(visible, rows)
