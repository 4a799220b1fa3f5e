"""Index tables of the level-wise build: which pairs of parent and candidate can matter at all."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch


class Level(NamedTuple):
    """The pairs of one depth below the first.

    Attributes:
        up: [pairs of the level] int64, the parent's place among the kept nodes one level up.
        keep: how many of the best can enter the tree.
    """

    up: torch.Tensor
    keep: int


class Tables(NamedTuple):
    """All pairs, numbered by depth, parent's place and sibling rank, which is the tie rule.

    "Kept" counts the kept nodes of all levels, one level after another.

    Attributes:
        levels: from depth 2 down; all pairs of depth 1 are kept, in their order.
        sizes: pairs of each level, from depth 1 down.
        kept: how many nodes are kept in all.
        root: the root's index, past those of all kept nodes and of N.
        pair: [pairs] int64, 0, 1, 2, ...
        step: [pairs] int64, index into the flat [D, K] candidates of a request.
        cell: [pairs + 1] int64, `step` and 0.
        parent: [pairs + 1] int64, the parent's index among the kept, or `root`.
        depth: [pairs + 1] int32.
        padding: the number of no pair, at which `cell`, `parent` and `depth` describe padding.
        spine: [levels] int64, index among the kept of each level's best node.
        place: [N] int32, 1 to N.
    """

    levels: tuple[Level, ...]
    sizes: list[int]
    kept: int
    root: int
    pair: torch.Tensor
    step: torch.Tensor
    cell: torch.Tensor
    parent: torch.Tensor
    depth: torch.Tensor
    padding: torch.Tensor
    spine: torch.Tensor
    place: torch.Tensor


@lru_cache(maxsize=64)
def tables(nodes: int, positions: int, ranks: int, stride: int, device: torch.device) -> Tables:
    """Tables for trees of `nodes` nodes from `ranks` candidates of `positions` positions.

    Args:
        nodes: N, at least 1.
        positions: D, at least 1.
        ranks: most children of a node, at least 1.
        stride: K, candidates per position in memory.
        device: where the tables live.
    """

    def on_device(values: list[int], dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype, device=device)

    above = min(nodes, ranks)
    levels: list[Level] = []
    first, sizes, kept, spine = 0, [above], above, [0]
    cell, parent, depths = list(range(above)), [-1] * above, [1] * above
    for depth in range(2, min(nodes, positions) + 1):
        chosen = pairs(nodes, depth, ranks, above)
        sizes.append(len(chosen))
        cell += [(depth - 1) * stride + rank for _, rank in chosen]
        parent += [first + place for place, _ in chosen]
        depths += [depth] * len(chosen)
        # A node of place i has i nodes of its own depth before it and depth - 1 ancestors.
        first, above = kept, min(len(chosen), nodes - depth + 1)
        levels.append(Level(on_device([place for place, _ in chosen]), above))
        spine.append(kept)
        kept += above
    root = max(kept, nodes)
    return Tables(
        levels=tuple(levels),
        sizes=sizes,
        kept=kept,
        root=root,
        pair=on_device(list(range(len(cell)))),
        step=on_device(cell),
        cell=on_device([*cell, 0]),
        parent=on_device([root if index < 0 else index for index in [*parent, -1]]),
        depth=on_device([*depths, 0], torch.int32),
        padding=on_device([len(cell)]),
        spine=on_device(spine),
        place=on_device(list(range(1, nodes + 1)), torch.int32),
    )


def pairs(nodes: int, depth: int, ranks: int, above: int) -> list[tuple[int, int]]:
    """Parent's place and sibling rank of the pairs of a depth of 2 or more that can matter.

    Before or at pair (i, r) come the (i + 1)(r + 1) pairs that are nowhere worse, their i + 1
    parents, and at least one node of each depth above those; all of them have to fit.
    """
    room = nodes - (depth - 2)
    return [
        (place, rank)
        for place in range(min(above, room // 2))
        for rank in range(min(ranks, room // (place + 1) - 1))
    ]
