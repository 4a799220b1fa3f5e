"""Index tables of the level-wise build: which pairs of parent and candidate can matter at all."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch


class Level(NamedTuple):
    """The pairs of one depth below the first; a column is a pair's position in memory.

    Attributes:
        up: [pairs of the level] int64, by column: the parent's place one level up.
        keep: how many nodes of the depth can be parents.
    """

    up: torch.Tensor
    keep: int


class Tables(NamedTuple):
    """All pairs, numbered by depth, parent's place and sibling rank, which is the tie rule.

    "Kept" are the nodes of all levels that can be parents, one level after another.

    Attributes:
        levels: from depth 2 down.
        sizes: pairs of each level, from depth 1 down.
        parts: the same in two parts each: those that can be parents, and the others.
        pair: [pairs] int64, by column: the pair's number.
        step: [pairs] int64, by column: index into the flat [D, K] candidates of a request.
        cell: [pairs + 1] int64, by number: the same index.
        parent: [pairs + 1] int64, by number: the parent's index among the kept, 0 being the root.
        depth: [pairs + 1] int32, by number.
        padding: the number of no pair, at which `cell`, `parent` and `depth` describe padding.
        root: [1] int64, the root's number, after `padding`.
        spine: [levels] int64, each level's column of the best candidate below the best parent.
        place: [N] int16, 1 to N.
    """

    levels: tuple[Level, ...]
    sizes: list[int]
    parts: list[int]
    pair: torch.Tensor
    step: torch.Tensor
    cell: torch.Tensor
    parent: torch.Tensor
    depth: torch.Tensor
    padding: int
    root: torch.Tensor
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

    depths = range(1, min(nodes, positions) + 1)
    keep = [min(nodes, ranks)]
    chosen = [[(0, rank) for rank in range(keep[0])]]
    for depth in depths[1:]:
        keep[-1] = min(keep[-1], parents_at(nodes, depth))
        chosen.append(pairs(nodes, depth, ranks, keep[-1]))
        keep.append(min(len(chosen[-1]), nodes - depth + 1))
    keep[-1] = 0
    orders = [columns(level, most) for level, most in zip(chosen, keep, strict=True)]
    sizes = [len(level) for level in chosen]
    offsets = [sum(sizes[:index]) for index in range(len(sizes))]
    cell = [index * stride + rank for index, level in enumerate(chosen) for _, rank in level]
    pair = [at + own for at, (order, _) in zip(offsets, orders, strict=True) for own in order]
    parent = [0] * sizes[0] + [
        1 + sum(keep[:index]) + place
        for index, level in enumerate(chosen[1:])
        for place, _ in level
    ]
    return Tables(
        levels=tuple(
            Level(on_device([level[own][0] for own in order]), most)
            for level, (order, _), most in zip(chosen[1:], orders[1:], keep[1:], strict=True)
        ),
        sizes=sizes,
        parts=[
            part
            for size, (_, strong) in zip(sizes, orders, strict=True)
            for part in (strong, size - strong)
        ],
        pair=on_device(pair),
        step=on_device([cell[number] for number in pair]),
        cell=on_device([*cell, 0]),
        parent=on_device([*parent, 0]),
        depth=on_device(
            [*(d for d, size in zip(depths, sizes, strict=True) for _ in range(size)), 0],
            torch.int32,
        ),
        padding=len(cell),
        root=on_device([len(cell) + 1]),
        spine=on_device(offsets),
        place=on_device(list(range(1, nodes + 1)), torch.int16),
    )


def parents_at(nodes: int, depth: int) -> int:
    """The most nodes of the depth above that can have a child at a depth of 2 or more.

    Before the first child of place i come its parent's i predecessors and their i first
    children, and one node of each depth above those.
    """
    return (nodes - (depth - 2)) // 2


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


def columns(level: list[tuple[int, int]], keep: int) -> tuple[list[int], int]:
    """An order of a level's pairs that begins with those that can have a place below `keep`."""
    strong = [own for own, (i, r) in enumerate(level) if (i + 1) * (r + 1) <= keep]
    taken = set(strong)
    return strong + [own for own in range(len(level)) if own not in taken], len(strong)
