"""Follow the target's tokens through each draft tree and put the accepted path's rows first."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch

from .. import checks
from . import reference, vectorised
from .vectorised import row_starts

__all__ = ["Form", "Walk", "row_starts", "walk", "walk_logits"]

Form = Literal["auto", "reference", "vectorised", "kernel"]
FORMS = ("auto", "reference", "vectorised", "kernel")
INTS = (torch.int32, torch.int64)
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class Walk(NamedTuple):
    """What the target accepted of each request's tree.

    Attributes:
        perm: [R, N + 1] int32, a permutation of 0..N: the path from the root, the other real rows
            ascending, the padding rows ascending. `perm[r, i]` is the row that moves to place `i`.
        accepted: [R] int32, nodes on the path; the root is not counted.
        bonus: [R], the target's token at the path's last row.
        bonus_row: [R] int32, the path's last row.
    """

    perm: torch.Tensor
    accepted: torch.Tensor
    bonus: torch.Tensor
    bonus_row: torch.Tensor


def walk(
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    *,
    row_start: torch.Tensor | None = None,
    form: Form = "auto",
) -> Walk:
    """From each root, follow the child whose token is the target's token until there is none.

    The target's token at a row is its argmax, or a draw with the request's sampling parameters;
    a draw at every row makes every emitted token a draw from the target. Of children with the
    same token the lowest row is followed.

    Args:
        target: [R, N + 1] int32 or int64, the target's token after each row; with `row_start`
            [rows], the rows of all requests one after another.
        tokens: [R, N] int32.
        parents: [R, N] int32.
        count: [R] int32, 0 for a request without drafts.
        row_start: [R] or [R + 1] int32 or int64, the first of each request's `count + 1` rows.
        form: "auto" takes the kernel on a GPU and the vectorised form elsewhere.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above.

    Source: DDTree, Ringel & Romano 2026, arXiv 2604.12989, verification.
    """
    _check_tree(tokens, parents, count, row_start, form)
    shape = _target_shape(tokens, row_start)
    checks.tensor("target", target, shape, INTS, tokens.device)
    _check_rows("target", target, tokens)
    args = (target, tokens, parents, count, row_start)
    if _chosen(form, tokens) == "kernel":
        # A machine without a GPU may be without Triton.
        from . import kernel

        out = kernel.outputs(tokens, target.dtype)
        if tokens.shape[0] > 0:
            kernel.walk(out, *args)
        return Walk(*out)
    return Walk(*(reference if form == "reference" else vectorised).walk(*args))


def walk_logits(
    logits: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    *,
    row_start: torch.Tensor | None = None,
    form: Form = "auto",
) -> Walk:
    """Walk with each row's greedy token, taken from the logits of the visited rows only.

    Of equal logits the lowest index wins; NaN counts as +inf (where one row holds both, which
    of them wins depends on the form). `bonus` is int32.

    Args:
        logits: [R, N + 1, V] float32, float16 or bfloat16, contiguous; with `row_start` [rows, V],
            where only the last stride has to be 1.
        tokens: as in `walk`, and so are the others.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above.
    """
    _check_tree(tokens, parents, count, row_start, form)
    shape = (*_target_shape(tokens, row_start), None)
    whole = row_start is None
    checks.tensor("logits", logits, shape, FLOATS, tokens.device, contiguous=whole)
    _check_rows("logits", logits, tokens)
    _check_vocabulary(logits)
    flat = logits if row_start is not None else logits.flatten(0, 1)
    if _chosen(form, tokens) == "kernel":
        # A machine without a GPU may be without Triton.
        from . import kernel

        out = kernel.outputs(tokens, torch.int32)
        if tokens.shape[0] > 0:
            kernel.walk_logits(out, flat, tokens, parents, count, row_start)
        return Walk(*out)
    greedy = reference.greedy(flat) if form == "reference" else flat.argmax(-1).to(torch.int32)
    target = greedy if row_start is not None else greedy.view(tokens.shape[0], -1)
    args = (target, tokens, parents, count, row_start)
    return Walk(*(reference if form == "reference" else vectorised).walk(*args))


def _chosen(form: Form, tokens: torch.Tensor) -> Form:
    if form == "auto":
        return "kernel" if tokens.is_cuda else "vectorised"
    return form


def _target_shape(tokens: torch.Tensor, row_start: torch.Tensor | None) -> tuple[int | None, ...]:
    return (tokens.shape[0], tokens.shape[1] + 1) if row_start is None else (None,)


def _check_tree(
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    row_start: torch.Tensor | None,
    form: str,
) -> None:
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    int32 = (torch.int32,)
    checks.tensor("tokens", tokens, (None, None), int32)
    requests = tokens.shape[0]
    checks.tensor("parents", parents, tokens.shape, int32, tokens.device)
    checks.tensor("count", count, (requests,), int32, tokens.device)
    if row_start is None:
        return
    checks.tensor("row_start", row_start, (None,), INTS, tokens.device)
    if row_start.shape[0] not in (requests, requests + 1):
        raise ValueError(
            f"row_start: expected {requests} or {requests + 1} starts, found {row_start.shape[0]}"
        )


def _check_rows(name: str, value: torch.Tensor, tokens: torch.Tensor) -> None:
    if value.shape[0] < tokens.shape[0]:
        raise ValueError(
            f"{name}: expected at least one row for each of {tokens.shape[0]} requests, "
            f"found {value.shape[0]}"
        )


def _check_vocabulary(logits: torch.Tensor) -> None:
    if logits.shape[-1] == 0:
        raise ValueError("logits: expected at least one token per row, found 0")
    if logits.shape[-1] > 1 and logits.stride(-1) != 1:
        raise ValueError(f"logits: expected last stride 1, found strides {logits.stride()}")
