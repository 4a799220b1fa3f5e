"""Reorder all rows of a step so that each request's accepted path comes first."""

from __future__ import annotations

import torch

from .. import checks
from . import vectorised

__all__ = ["permute_rows", "row_order"]


def row_order(
    perm: torch.Tensor,
    count: torch.Tensor,
    *,
    rows: int,
    row_start: torch.Tensor | None = None,
) -> torch.Tensor:
    """One index for the rows of all requests, made once per step and used for every tensor.

    Args:
        perm: [R, N + 1] int32, as `walk` returns it.
        count: [R] int32.
        rows: T, the rows of the tensors that are to be reordered.
        row_start: [R] or [R + 1] int32 or int64, the first of each request's `count + 1` rows;
            `r * (N + 1)` when None. Rows of no request stay where they are.

    Returns:
        [T] int64: row `i` of the reordered tensor is row `index[i]` of the given one.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above.
    """
    checks.tensor("perm", perm, (None, None), (torch.int32,))
    requests = perm.shape[0]
    checks.tensor("count", count, (requests,), (torch.int32,), perm.device)
    if row_start is None:
        if rows < perm.numel():
            raise ValueError(f"rows: expected at least {perm.numel()}, found {rows}")
        return vectorised.row_order(perm, count, rows, None)
    checks.tensor("row_start", row_start, (None,), (torch.int32, torch.int64), perm.device)
    if row_start.shape[0] not in (requests, requests + 1):
        raise ValueError(
            f"row_start: expected {requests} or {requests + 1} starts, found {row_start.shape[0]}"
        )
    if rows < requests:
        raise ValueError(f"rows: expected at least {requests}, found {rows}")
    return vectorised.row_order(perm, count, rows, row_start[:requests])


def permute_rows(tensor: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """A new tensor whose row `i` is row `order[i]` of `tensor`.

    Args:
        tensor: [T, ...] of any dtype.
        order: [T] int64, from `row_order`.

    Raises:
        ValueError: `order` has another length, dtype or device.
    """
    if tensor.dim() == 0:
        raise ValueError("tensor: expected at least one axis, found none")
    checks.tensor("order", order, (tensor.shape[0],), (torch.int64,), tensor.device)
    return tensor.index_select(0, order)
