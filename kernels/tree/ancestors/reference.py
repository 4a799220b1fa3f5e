"""Climb from every row to the root, one parent at a time."""

from __future__ import annotations

import torch


def ancestors(
    parents: torch.Tensor, count: torch.Tensor, words: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Visibility words, depth and chain flag of every request; see the launcher for shapes."""
    rows = parents.shape[1] + 1
    visible, depth, is_chain = [], [], []
    for line, nodes in zip(parents.tolist(), count.tolist(), strict=True):
        # A padding row sees itself and nothing else.
        paths = [climb(row, line) if row <= nodes else [row] for row in range(rows)]
        visible.append([pack(path, words) for path in paths])
        depth.append([len(path) - 1 for path in paths])
        is_chain.append(all(line[node] == node for node in range(nodes)))
    device = parents.device
    return (
        torch.tensor(visible, dtype=torch.int64, device=device).reshape(len(visible), rows, words),
        torch.tensor(depth, dtype=torch.int32, device=device).reshape(len(depth), rows),
        torch.tensor(is_chain, dtype=torch.bool, device=device),
    )


def climb(row: int, parents: list[int]) -> list[int]:
    """Rows from `row` up to the root."""
    path = [row]
    while path[-1] != 0:
        path.append(parents[path[-1] - 1])
    return path


def pack(rows: list[int], words: int) -> list[int]:
    """Bit `row % 64` of word `row // 64` for every row; bit 63 is the sign of an int64."""
    packed = [0] * words
    for row in rows:
        packed[row // 64] |= 1 << row % 64
    return [word - (1 << 64) if word >> 63 else word for word in packed]
