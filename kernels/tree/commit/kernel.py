"""Move accepted rows in every layer, half and head of a layout with one launch."""

# A jitted function's arguments are Triton's own types, which have no annotations.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import torch
import triton
import triton.language as tl

WORDS = {torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32, torch.int64: tl.int64}
# Bytes and elements of a slot that one program moves at most, and elements per warp: two per
# thread, since a row of odd length takes a predicate for each, and predicates spill early.
BYTES = 2048
ELEMENTS = 512
PER_WARP = 64


@triton.jit
def _slot_pair(slots_ptr, perm_ptr, start, place, accepted, inner):
    """Source slot and destination slot of a place, and how many elements it takes."""
    taken = place <= accepted
    origin = tl.load(perm_ptr + place, mask=taken, other=0)
    moved = taken & (origin != place)
    if slots_ptr is None:
        source = start + origin
        to = start + place
    else:
        source = tl.load(slots_ptr + start + origin, mask=moved, other=-1)
        to = tl.load(slots_ptr + start + place, mask=moved, other=-1)
    return source, to, tl.where(moved & (source >= 0) & (to >= 0), inner, 0)


@triton.jit
def _at(slot, block_stride, slot_stride, BLOCK_SIZE: tl.constexpr):
    return (slot // BLOCK_SIZE) * block_stride + (slot % BLOCK_SIZE) * slot_stride


@triton.jit
def commit_kernel(
    data_ptr,  # [views] int64 addresses, or the data itself
    slots_ptr,  # [R, rows] or [rows of all requests] int64, or None: a row is its own slot
    perm_ptr,  # [R, rows] int32
    accepted_ptr,  # [R] int32
    row_start_ptr,  # [R] int32 or int64, or None
    rows,
    block_stride,
    slot_stride,
    outer_stride,
    inner,
    inner_stride,
    chunks,
    WORD: tl.constexpr,
    TABLE: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    part = tl.program_id(0)
    request = tl.program_id(1).to(tl.int64)
    accepted = tl.load(accepted_ptr + request)
    if row_start_ptr is None:
        start = request * rows
    else:
        start = tl.load(row_start_ptr + request).to(tl.int64)
    if TABLE:
        base = tl.load(data_ptr + tl.program_id(2)).to(tl.pointer_type(WORD))
        if ALIGNED:
            base = tl.multiple_of(base, 16)
    else:
        base = data_ptr
    column = (part % chunks) * BLOCK + tl.arange(0, BLOCK)
    base += (part // chunks).to(tl.int64) * outer_stride
    offset = column.to(tl.int64) * inner_stride

    line_ptr = perm_ptr + request * rows
    # Four rows are read before any is written, to have their reads in flight together. The path
    # ascends, so no row that is still to be read lies at a place that is already written. Each
    # thread moves its own elements of all rows, so its program order is all the order needed: a
    # barrier between warps would not wait for reads on every target.
    for first in range(1, accepted + 1, 4):
        source0, to0, size0 = _slot_pair(slots_ptr, line_ptr, start, first, accepted, inner)
        source1, to1, size1 = _slot_pair(slots_ptr, line_ptr, start, first + 1, accepted, inner)
        source2, to2, size2 = _slot_pair(slots_ptr, line_ptr, start, first + 2, accepted, inner)
        source3, to3, size3 = _slot_pair(slots_ptr, line_ptr, start, first + 3, accepted, inner)
        at0 = base + _at(source0, block_stride, slot_stride, BLOCK_SIZE)
        at1 = base + _at(source1, block_stride, slot_stride, BLOCK_SIZE)
        at2 = base + _at(source2, block_stride, slot_stride, BLOCK_SIZE)
        at3 = base + _at(source3, block_stride, slot_stride, BLOCK_SIZE)
        data0 = tl.load(at0 + offset, mask=column < size0)
        data1 = tl.load(at1 + offset, mask=column < size1)
        data2 = tl.load(at2 + offset, mask=column < size2)
        data3 = tl.load(at3 + offset, mask=column < size3)
        at0 = base + _at(to0, block_stride, slot_stride, BLOCK_SIZE)
        at1 = base + _at(to1, block_stride, slot_stride, BLOCK_SIZE)
        at2 = base + _at(to2, block_stride, slot_stride, BLOCK_SIZE)
        at3 = base + _at(to3, block_stride, slot_stride, BLOCK_SIZE)
        tl.store(at0 + offset, data0, mask=column < size0)
        tl.store(at1 + offset, data1, mask=column < size1)
        tl.store(at2 + offset, data2, mask=column < size2)
        tl.store(at3 + offset, data3, mask=column < size3)


def tile(inner: int, element_size: int) -> tuple[int, int]:
    """Elements of a run that one program moves, and warps that move them."""
    block = min(triton.next_power_of_2(inner), BYTES // element_size, ELEMENTS)
    return block, max(1, block // PER_WARP)


def commit(
    data: torch.Tensor,
    view: torch.Tensor,
    slots: torch.Tensor | None,
    perm: torch.Tensor,
    accepted: torch.Tensor,
    row_start: torch.Tensor | None,
    *,
    aligned: bool,
) -> None:
    """Launch for the views whose addresses `data` lists, or for `view` if `data` is that view.

    `view` is [blocks, block, outer, inner] of integers and stands for the others: they share its
    strides.
    """
    table = data is not view
    block, warps = tile(view.shape[3], view.element_size())
    chunks = triton.cdiv(view.shape[3], block)
    grid = (view.shape[2] * chunks, perm.shape[0], data.shape[0] if table else 1)
    commit_kernel[grid](
        data, slots, perm, accepted, row_start, perm.shape[1],
        view.stride(0), view.stride(1), view.stride(2), view.shape[3], view.stride(3), chunks,
        WORD=WORDS[view.dtype], TABLE=table, ALIGNED=aligned, BLOCK_SIZE=view.shape[1],
        BLOCK=block, num_warps=warps,
    )  # fmt: skip
