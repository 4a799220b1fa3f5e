"""Best-first build with a heap per request, on the host."""

from __future__ import annotations

import ctypes
import heapq
import math
from typing import NamedTuple

import torch


class Candidate(NamedTuple):
    """One usable candidate of a position; a lower cost is a higher probability."""

    cost: float
    token: int


class Node(NamedTuple):
    """A node that may enter the tree; tuples compare field by field, which is the tie rule."""

    late: bool
    cost: float
    depth: int
    parent: int
    rank: int
    parent_cost: float


def build(
    ids: torch.Tensor,
    logp: torch.Tensor,
    nodes: int,
    budgets: torch.Tensor | None,
    spine_first: bool,
    max_siblings: int | None,
    ranked: bool,
) -> tuple[torch.Tensor, ...]:
    """See `build`; returns tokens, parents, depth and count."""
    order = as_given if ranked else rank
    limits = [nodes] * len(ids) if budgets is None else budgets.tolist()
    trees = []
    for tokens, weights, limit in zip(ids.tolist(), logp.tolist(), limits, strict=True):
        positions = [
            order(*position)[:max_siblings] for position in zip(tokens, weights, strict=True)
        ]
        trees.append(best_first(positions, min(limit, nodes), spine_first))
    return pack(trees, nodes, ids.device)


def rank(tokens: list[int], weights: list[float]) -> list[Candidate]:
    """A position's candidates, best first: no impossible ones, and the first of equal tokens."""
    seen = set()
    usable = []
    for token, weight in zip(tokens, weights, strict=True):
        if token in seen:
            continue
        seen.add(token)
        # NaN compares false as well.
        if weight > -math.inf:
            usable.append(Candidate(max(0.0, -weight), token))
    # Python's sort is stable, so equal ones keep their order.
    return sorted(usable, key=lambda candidate: candidate.cost)


def as_given(tokens: list[int], weights: list[float]) -> list[Candidate]:
    """A position's candidates that are ranked already."""
    return [Candidate(-weight, token) for token, weight in zip(tokens, weights, strict=True)]


def best_first(
    positions: list[list[Candidate]], limit: int, spine_first: bool
) -> list[tuple[int, int, int]]:
    """Token, parent's row and depth of up to `limit` nodes; only a spine that leads is not late."""
    tree: list[tuple[int, int, int]] = []
    heap: list[Node] = []

    def push(late: bool, depth: int, parent: int, rank: int, parent_cost: float) -> None:
        if depth > len(positions) or rank == len(positions[depth - 1]):
            return
        cost = float32(parent_cost + positions[depth - 1][rank].cost)
        if cost < math.inf:
            heapq.heappush(heap, Node(late, cost, depth, parent, rank, parent_cost))

    push(not spine_first, 1, 0, 0, 0.0)
    while heap and len(tree) < limit:
        node = heapq.heappop(heap)
        tree.append((positions[node.depth - 1][node.rank].token, node.parent, node.depth))
        push(True, node.depth, node.parent, node.rank + 1, node.parent_cost)
        push(node.late, node.depth + 1, len(tree), 0, node.cost)
    return tree


def float32(value: float) -> float:
    """`value` rounded to float32; of a sum of two float32 this is their float32 sum."""
    return ctypes.c_float(value).value


def pack(
    trees: list[list[tuple[int, int, int]]], nodes: int, device: torch.device
) -> tuple[torch.Tensor, ...]:
    """Tokens, parents, depth [R, nodes] and count [R] of trees given as lists of nodes."""

    def column(field: int, padding: int) -> torch.Tensor:
        lines = [[node[field] for node in tree] + [padding] * (nodes - len(tree)) for tree in trees]
        table = torch.tensor(lines, dtype=torch.int32, device=device)
        return table.reshape(len(trees), nodes)

    count = torch.tensor([len(tree) for tree in trees], dtype=torch.int32, device=device)
    return column(0, -1), column(1, 0), column(2, 0), count
