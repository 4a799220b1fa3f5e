"""Drafted batches for the benchmarks: random trees of which the target accepts a deep path."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ddtree.kernels.tree.walk import Walk, walk

REQUESTS = (1, 8, 64)
NODES = (16, 64, 256)
# What a drafter of 15 positions can give.
DEEPEST = 15


@dataclass(frozen=True, slots=True)
class Drafted:
    """Full trees of a batch and target tokens that accept one path of each.

    Attributes:
        target: [R, N + 1] int64.
        tokens: [R, N] int32.
        parents: [R, N] int32.
        count: [R] int32, all N.
    """

    target: torch.Tensor
    tokens: torch.Tensor
    parents: torch.Tensor
    count: torch.Tensor

    def label(self) -> str:
        """The sizes."""
        requests, nodes = self.tokens.shape
        return f"R={requests} N={nodes}"

    def walk(self) -> Walk:
        """The walk of the batch."""
        return walk(self.target, self.tokens, self.parents, self.count)


def drafted(requests: int, nodes: int, seed: int = 0) -> Drafted:
    """A batch on the GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = random.Random(seed)
    trees = [_parents(nodes, rng) for _ in range(requests)]
    # Distinct tokens, so that a request accepts its chosen path and nothing by chance.
    target = [_target(parents, rng.randrange(nodes + 1)) for parents in trees]
    tokens = torch.arange(nodes, dtype=torch.int32).repeat(requests, 1)
    return Drafted(
        target=torch.tensor(target, dtype=torch.int64, device=device),
        tokens=tokens.to(device),
        parents=torch.tensor(trees, dtype=torch.int32, device=device),
        count=torch.full((requests,), nodes, dtype=torch.int32, device=device),
    )


def batches() -> Iterator[Drafted]:
    """One batch of every size."""
    for requests in REQUESTS:
        for nodes in NODES:
            yield drafted(requests, nodes)


def _parents(nodes: int, rng: random.Random) -> list[int]:
    depth = [0]
    parents = []
    for _ in range(nodes):
        parent = rng.choice([row for row, deep in enumerate(depth) if deep < DEEPEST])
        parents.append(parent)
        depth.append(depth[parent] + 1)
    return parents


def _target(parents: list[int], end: int) -> list[int]:
    target = [len(parents)] * (len(parents) + 1)
    while end != 0:
        target[parents[end - 1]] = end - 1
        end = parents[end - 1]
    return target
