"""Move the accepted rows of a step to the places right after the root, in caches and in buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from .. import checks
from . import reference, vectorised
from .plan import LAYOUTS, CommitPlan, as_words

__all__ = ["LAYOUTS", "CommitPlan", "Form", "commit", "commit_rows"]

Form = Literal["auto", "reference", "vectorised", "kernel"]
FORMS = ("auto", "reference", "vectorised", "kernel")
STARTS = (torch.int32, torch.int64)


def commit(
    plan: CommitPlan,
    slots: torch.Tensor,
    perm: torch.Tensor,
    accepted: torch.Tensor,
    *,
    row_start: torch.Tensor | None = None,
    longest: int | None = None,
    form: Form = "auto",
) -> None:
    """Copy each accepted row's keys and values to the slot of its place, in every layer.

    Place `i` of request `r`, for `1 <= i <= accepted[r]`, takes what row `perm[r, i]` holds; all
    other slots keep their contents. Every source is read before anything is written over it. A
    row that is at its place does not move. Negative slots are padding and are skipped.

    Args:
        plan: the caches.
        slots: [R, rows] int64, the slot of every row of the step; with `row_start` [T], the rows
            of all requests one after another. Slots of real rows are distinct.
        perm: [R, rows] int32, as `walk` returns it: the accepted rows come first and ascend.
        accepted: [R] int32.
        row_start: [R] or [R + 1] int32 or int64, the first row of each request.
        longest: no request accepts more rows; the vectorised form then copies fewer.
        form: "auto" takes the kernel on a GPU and the vectorised form elsewhere.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above.
    """
    _check_path(perm, accepted, row_start, longest, form)
    shape = tuple(perm.shape) if row_start is None else (None,)
    checks.tensor("slots", slots, shape, (torch.int64,), perm.device)
    for group in plan.groups:
        if group.geometry.device != perm.device:
            raise ValueError(
                f"plan: expected caches on {perm.device}, found {group.geometry.device}"
            )
    if 0 in perm.shape or slots.numel() == 0:
        return
    if _chosen(form, perm) == "kernel":
        # A machine without a GPU may be without Triton.
        from . import kernel

        for group in plan.groups:
            kernel.commit(
                group.pointers, group.views[0], slots, perm, accepted, row_start,
                aligned=group.aligned,
            )  # fmt: skip
    elif form == "reference":
        for group in plan.groups:
            reference.commit(group.views, slots, perm, accepted, row_start)
    else:
        longest = perm.shape[1] - 1 if longest is None else longest
        moves = vectorised.moves(slots, perm, accepted, row_start, longest)
        for group in plan.groups:
            vectorised.move(group.views, *moves)


def commit_rows(
    tensors: Sequence[torch.Tensor],
    perm: torch.Tensor,
    accepted: torch.Tensor,
    *,
    row_start: torch.Tensor | None = None,
    longest: int | None = None,
    form: Form = "auto",
) -> None:
    """Move the accepted rows of hidden states, ids or logits in place, as `commit` does in caches.

    Rows after the accepted ones keep their contents. One launch per tensor.

    Args:
        tensors: each [R * rows, ...], with `row_start` [T, ...]; up to two axes after the row,
            any strides and any element of 1, 2, 4 or 8 bytes.
        perm: as in `commit`, and so are the others.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above.
    """
    _check_path(perm, accepted, row_start, longest, form)
    views = [_rows_view(number, tensor, perm, row_start) for number, tensor in enumerate(tensors)]
    if 0 in perm.shape or not views:
        return
    if _chosen(form, perm) == "kernel":
        # A machine without a GPU may be without Triton.
        from . import kernel

        for view in views:
            kernel.commit(view, view, None, perm, accepted, row_start, aligned=False)
        return
    slots = torch.arange(views[0].shape[0], device=perm.device)
    longest = perm.shape[1] - 1 if longest is None else longest
    for view in views:
        if form == "reference":
            reference.commit((view,), slots, perm, accepted, row_start)
        else:
            vectorised.move((view,), *vectorised.moves(slots, perm, accepted, row_start, longest))


def _rows_view(
    number: int, tensor: torch.Tensor, perm: torch.Tensor, row_start: torch.Tensor | None
) -> torch.Tensor:
    """The tensor as blocks of one slot."""
    name = f"tensors[{number}]"
    if tensor.device != perm.device:
        raise ValueError(f"{name}: expected device {perm.device}, found {tensor.device}")
    if not 1 <= tensor.dim() <= 3:
        raise ValueError(f"{name}: expected 1 to 3 axes, found {list(tensor.shape)}")
    if row_start is None and tensor.shape[0] != perm.numel():
        raise ValueError(f"{name}: expected {perm.numel()} rows, found {tensor.shape[0]}")
    return as_words(name, tensor.unsqueeze(1))


def _chosen(form: Form, perm: torch.Tensor) -> Form:
    if form == "auto":
        return "kernel" if perm.is_cuda else "vectorised"
    return form


def _check_path(
    perm: torch.Tensor,
    accepted: torch.Tensor,
    row_start: torch.Tensor | None,
    longest: int | None,
    form: str,
) -> None:
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    checks.tensor("perm", perm, (None, None), (torch.int32,))
    requests, rows = perm.shape
    checks.tensor("accepted", accepted, (requests,), (torch.int32,), perm.device)
    if longest is not None and not 0 <= longest < max(rows, 1):
        raise ValueError(f"longest: expected 0 to {max(rows, 1) - 1}, found {longest}")
    if row_start is None:
        return
    checks.tensor("row_start", row_start, (None,), STARTS, perm.device)
    if row_start.shape[0] not in (requests, requests + 1):
        raise ValueError(
            f"row_start: expected {requests} or {requests + 1} starts, found {row_start.shape[0]}"
        )
