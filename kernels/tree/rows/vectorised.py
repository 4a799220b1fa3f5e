"""The row index without host synchronisation: one scatter into the identity."""

from __future__ import annotations

import torch


def row_order(
    perm: torch.Tensor, count: torch.Tensor, rows: int, row_start: torch.Tensor | None
) -> torch.Tensor:
    """The index of all rows; see the launcher for shapes."""
    requests, width = perm.shape
    device = perm.device
    place = torch.arange(width, device=device)
    first = torch.arange(requests, device=device) * width
    start = (first if row_start is None else row_start.long())[:, None]
    # Padding goes to a spare place behind the last row.
    to = torch.where(place <= count[:, None], start + place, rows)
    order = torch.arange(rows + 1, device=device)
    order.scatter_(0, to.reshape(-1), (start + perm).reshape(-1))
    return order[:rows]
