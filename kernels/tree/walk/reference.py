"""Follow the target's tokens from the root, one request and one node at a time."""

from __future__ import annotations

import math

import torch


def walk(
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    row_start: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The walk of every request; see the launcher for shapes."""
    rows = tokens.shape[1] + 1
    perm, accepted, bonus, bonus_row = [], [], [], []
    flat = target.reshape(-1).tolist()
    for request, nodes in enumerate(count.tolist()):
        start = request * rows if row_start is None else int(row_start[request])
        wanted = flat[start : start + nodes + 1]
        path = follow(wanted, tokens[request].tolist(), parents[request].tolist(), nodes)
        real = [row for row in range(nodes + 1) if row not in path]
        perm.append([*path, *real, *range(nodes + 1, rows)])
        accepted.append(len(path) - 1)
        bonus.append(wanted[path[-1]])
        bonus_row.append(path[-1])
    device, int32 = target.device, torch.int32
    return (
        torch.tensor(perm, dtype=int32, device=device).reshape(len(perm), rows),
        torch.tensor(accepted, dtype=int32, device=device),
        torch.tensor(bonus, dtype=target.dtype, device=device),
        torch.tensor(bonus_row, dtype=int32, device=device),
    )


def follow(wanted: list[int], tokens: list[int], parents: list[int], nodes: int) -> list[int]:
    """Rows of the accepted path, the root first."""
    path = [0]
    while True:
        row = path[-1]
        matches = (j + 1 for j in range(nodes) if parents[j] == row and tokens[j] == wanted[row])
        child = next(matches, None)
        if child is None:
            return path
        path.append(child)


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """Lowest index of each row's greatest logit, NaN counted as +inf; [rows, V] to [rows] int32."""
    chosen = []
    for row in logits.tolist():
        values = [math.inf if math.isnan(value) else value for value in row]
        chosen.append(values.index(max(values)))
    return torch.tensor(chosen, dtype=torch.int32, device=logits.device)
