"""The walk in one launch: from given target tokens, or from logits read only at visited rows."""

# A jitted function's arguments are Triton's own types, which have no annotations.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _start(row_start_ptr, request, rows):
    # Padded targets start every `rows` rows, ragged ones where the table says.
    if row_start_ptr is None:
        start = request.to(tl.int64) * rows
    else:
        start = tl.load(row_start_ptr + request).to(tl.int64)
    return start


@triton.jit
def _load_tree(tokens_ptr, parents_ptr, request, nodes, count, row):
    line = request.to(tl.int64) * nodes
    is_node = (row >= 1) & (row <= count)
    token = tl.load(tokens_ptr + line + row - 1, mask=is_node, other=-1)
    parent = tl.load(parents_ptr + line + row - 1, mask=is_node, other=-1)
    return token, parent, is_node


@triton.jit
def _child(token, parent, is_node, row, at, wanted, ROWS: tl.constexpr):
    # `row > at` holds in every tree, and ends the walk on a table that is none.
    match = is_node & (parent == at) & (token.to(tl.int64) == wanted) & (row > at)
    return tl.min(tl.where(match, row, ROWS))


@triton.jit
def _store_walk(
    perm_ptr, accepted_ptr, bonus_ptr, bonus_row_ptr,
    request, rows, count, row, on_path, accepted, bonus, at,
):  # fmt: skip
    # Parents have smaller rows than their children: ascending rows are the path's own order.
    before = tl.cumsum(on_path.to(tl.int32), 0) - 1
    place = tl.where(on_path, before, row - before + accepted)
    place = tl.where(row <= count, place, row)
    tl.store(perm_ptr + request.to(tl.int64) * rows + place, row, mask=row < rows)
    tl.store(accepted_ptr + request, accepted)
    tl.store(bonus_ptr + request, bonus.to(bonus_ptr.dtype.element_ty))
    tl.store(bonus_row_ptr + request, at)


@triton.jit
def walk_kernel(
    perm_ptr,  # [R, nodes + 1] int32
    accepted_ptr,  # [R] int32
    bonus_ptr,  # [R] of the target's type
    bonus_row_ptr,  # [R] int32
    target_ptr,  # [R, nodes + 1] or [rows of all requests] int32 or int64
    tokens_ptr,  # [R, nodes] int32
    parents_ptr,  # [R, nodes] int32
    count_ptr,  # [R] int32
    row_start_ptr,  # [R] int32 or int64, or None
    nodes,
    ROWS: tl.constexpr,
):
    request = tl.program_id(0)
    row = tl.arange(0, ROWS)
    count = tl.load(count_ptr + request)
    token, parent, is_node = _load_tree(tokens_ptr, parents_ptr, request, nodes, count, row)
    start = _start(row_start_ptr, request, nodes + 1)
    at = 0
    accepted = 0
    on_path = row == 0
    wanted = tl.load(target_ptr + start).to(tl.int64)
    child = _child(token, parent, is_node, row, at, wanted, ROWS)
    while child < ROWS:
        at = child
        accepted += 1
        on_path = on_path | (row == at)
        wanted = tl.load(target_ptr + start + at).to(tl.int64)
        child = _child(token, parent, is_node, row, at, wanted, ROWS)
    _store_walk(
        perm_ptr, accepted_ptr, bonus_ptr, bonus_row_ptr,
        request, nodes + 1, count, row, on_path, accepted, wanted, at,
    )  # fmt: skip


@triton.jit
def _argmax(line_ptr, vocabulary, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    index = lane
    for first in range(0, vocabulary, BLOCK):
        here = first + lane
        value = tl.load(line_ptr + here, mask=here < vocabulary, other=float("-inf"))
        value = value.to(tl.float32)
        # Only NaN differs from itself.
        value = tl.where(value != value, float("inf"), value)  # noqa: PLR0124
        # Strictly greater: among equals a lane keeps its first.
        better = value > best
        best = tl.where(better, value, best)
        index = tl.where(better, here, index)
    return tl.min(tl.where(best == tl.max(best), index, vocabulary))


@triton.jit
def walk_logits_kernel(
    perm_ptr,  # [R, nodes + 1] int32
    accepted_ptr,  # [R] int32
    bonus_ptr,  # [R] int32
    bonus_row_ptr,  # [R] int32
    logits_ptr,  # [R * (nodes + 1) or rows of all requests, vocabulary] of any float
    tokens_ptr,  # [R, nodes] int32
    parents_ptr,  # [R, nodes] int32
    count_ptr,  # [R] int32
    row_start_ptr,  # [R] int32 or int64, or None
    nodes,
    vocabulary,
    line_stride,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    request = tl.program_id(0)
    row = tl.arange(0, ROWS)
    count = tl.load(count_ptr + request)
    token, parent, is_node = _load_tree(tokens_ptr, parents_ptr, request, nodes, count, row)
    start = _start(row_start_ptr, request, nodes + 1)
    at = 0
    accepted = 0
    on_path = row == 0
    wanted = _argmax(logits_ptr + start * line_stride, vocabulary, BLOCK)
    child = _child(token, parent, is_node, row, at, wanted, ROWS)
    while child < ROWS:
        at = child
        accepted += 1
        on_path = on_path | (row == at)
        wanted = _argmax(logits_ptr + (start + at) * line_stride, vocabulary, BLOCK)
        child = _child(token, parent, is_node, row, at, wanted, ROWS)
    _store_walk(
        perm_ptr, accepted_ptr, bonus_ptr, bonus_row_ptr,
        request, nodes + 1, count, row, on_path, accepted, wanted, at,
    )  # fmt: skip


def outputs(tokens: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Uninitialised perm, accepted, bonus and bonus_row."""
    requests, nodes = tokens.shape
    return (
        tokens.new_empty((requests, nodes + 1)),
        tokens.new_empty(requests),
        tokens.new_empty(requests, dtype=dtype),
        tokens.new_empty(requests),
    )


def walk(
    out: tuple[torch.Tensor, ...],
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    row_start: torch.Tensor | None,
) -> None:
    """Launch one program per request, into `out`."""
    requests, nodes = tokens.shape
    rows = triton.next_power_of_2(nodes + 1)
    walk_kernel[(requests,)](
        *out, target, tokens, parents, count, row_start, nodes,
        ROWS=rows, num_warps=1 if rows <= 256 else 4,
    )  # fmt: skip


def walk_logits(
    out: tuple[torch.Tensor, ...],
    logits: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    row_start: torch.Tensor | None,
) -> None:
    """Launch one program per request, into `out`; `logits` is [rows, vocabulary], last stride 1."""
    requests, nodes = tokens.shape
    vocabulary = logits.shape[1]
    walk_logits_kernel[(requests,)](
        *out, logits, tokens, parents, count, row_start, nodes,
        vocabulary, logits.stride(0),
        ROWS=triton.next_power_of_2(nodes + 1),
        BLOCK=min(4096, triton.next_power_of_2(vocabulary)), num_warps=8,
    )  # fmt: skip
