"""Candidate continuations merged by walking each one down the tree so far."""

from __future__ import annotations

import torch

from ..build.reference import pack


def trie(
    tokens: torch.Tensor, lengths: torch.Tensor, nodes: int, budgets: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """See `trie`; returns tokens, parents, depth and count."""
    limits = [nodes] * len(tokens) if budgets is None else budgets.tolist()
    trees = [
        merge([line[: max(0, length)] for line, length in zip(lines, known, strict=True)])
        for lines, known in zip(tokens.tolist(), lengths.tolist(), strict=True)
    ]
    cut = [tree[: max(0, min(limit, nodes))] for tree, limit in zip(trees, limits, strict=True)]
    return pack(cut, nodes, tokens.device)


def merge(continuations: list[list[int]]) -> list[tuple[int, int, int]]:
    """Token, parent's row and depth of every node, in the order in which they appear."""
    tree: list[tuple[int, int, int]] = []
    rows: dict[tuple[int, int], int] = {}
    for continuation in continuations:
        row = 0
        for depth, token in enumerate(continuation, start=1):
            if (row, token) not in rows:
                tree.append((token, row, depth))
                rows[row, token] = len(tree)
            row = rows[row, token]
    return tree
