"""Reorder the rows of each request in a list."""

from __future__ import annotations

import torch


def row_order(
    perm: torch.Tensor, count: torch.Tensor, rows: int, row_start: torch.Tensor | None
) -> torch.Tensor:
    """The index of all rows; see the launcher for shapes."""
    order = list(range(rows))
    for request, (line, nodes) in enumerate(zip(perm.tolist(), count.tolist(), strict=True)):
        start = request * perm.shape[1] if row_start is None else int(row_start[request])
        order[start : start + nodes + 1] = [start + row for row in line[: nodes + 1]]
    return torch.tensor(order, dtype=torch.int64, device=perm.device)
