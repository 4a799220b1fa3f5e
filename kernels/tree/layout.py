"""The tensors of a draft tree, as every builder returns them and every consumer takes them."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Tree(NamedTuple):
    """A draft tree per request, its nodes in an order in which every prefix is a tree.

    Attributes:
        tokens: [R, N] int32, the drafted token of node `j`; -1 in padding.
        parents: [R, N] int32, the row of node `j`'s parent, where row 0 is the root and node `j`
            is row `j + 1`, so `parents[r, j] <= j`; 0 in padding.
        depth: [R, N] int32, distance to the root, from 1; 0 in padding.
        count: [R] int32, nodes that are real; node `j` of request `r` is padding if and only if
            `j >= count[r]`.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    depth: torch.Tensor
    # The layout's own word; what it hides is a tuple's search for equal elements.
    count: torch.Tensor  # type: ignore[assignment]
