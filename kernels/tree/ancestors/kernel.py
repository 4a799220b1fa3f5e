"""Ancestor words, depths and the chain flag in one launch: every row climbs at the same time."""

# A jitted function's arguments are Triton's own types, which have no annotations.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _is_chain(line_ptr, count, TILE: tl.constexpr):
    wrong = tl.zeros([TILE], tl.int32)
    for first in range(0, count, TILE):
        node = first + tl.arange(0, TILE)
        parent = tl.load(line_ptr + node, mask=node < count, other=0)
        wrong += ((node < count) & (parent != node)).to(tl.int32)
    return tl.sum(wrong) == 0


@triton.jit
def ancestors_kernel(
    visible_ptr,  # [R, nodes + 1, words] int64
    depth_ptr,  # [R, nodes + 1] int32
    is_chain_ptr,  # [R] bool
    parents_ptr,  # [R, nodes] int32
    count_ptr,  # [R] int32
    nodes,
    words,
    TILE: tl.constexpr,
    WORDS: tl.constexpr,
):
    request = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * TILE + tl.arange(0, TILE)
    word = tl.arange(0, WORDS)
    count = tl.load(count_ptr + request)
    line_ptr = parents_ptr + request * nodes

    one = tl.full([1, 1], 1, tl.int64)
    at = row
    visible = tl.where(word[None, :] == at[:, None] // 64, one << (at[:, None] % 64), 0)
    depth = tl.zeros([TILE], tl.int32)
    # Padding rows do not climb. Rows fall on the way up, which also ends a table that is no tree.
    climbing = (row > 0) & (row <= count)
    while tl.max(climbing.to(tl.int32)) > 0:
        parent = tl.load(line_ptr + at - 1, mask=climbing, other=0)
        climbing = climbing & (parent < at) & (parent >= 0)
        at = tl.where(climbing, parent, at)
        bit = tl.where(word[None, :] == at[:, None] // 64, one << (at[:, None] % 64), 0)
        visible = visible | bit
        depth += climbing.to(tl.int32)
        climbing = climbing & (at > 0)

    rows = nodes + 1
    place = request * rows + row
    tl.store(depth_ptr + place, depth, mask=row < rows)
    tl.store(
        visible_ptr + place[:, None] * words + word[None, :],
        visible,
        mask=(row < rows)[:, None] & (word < words)[None, :],
    )
    if tl.program_id(1) == 0:
        tl.store(is_chain_ptr + request, _is_chain(line_ptr, count, TILE))


def outputs(parents: torch.Tensor, words: int) -> tuple[torch.Tensor, ...]:
    """Uninitialised visible, depth and is_chain."""
    requests, nodes = parents.shape
    return (
        parents.new_empty((requests, nodes + 1, words), dtype=torch.int64),
        parents.new_empty((requests, nodes + 1)),
        parents.new_empty(requests, dtype=torch.bool),
    )


def ancestors(
    out: tuple[torch.Tensor, ...], parents: torch.Tensor, count: torch.Tensor, words: int
) -> None:
    """Launch over requests and tiles of rows, into `out`."""
    requests, nodes = parents.shape
    width = triton.next_power_of_2(words)
    # Wide rows come in small tiles, which keeps the words of a tile in registers.
    tile = min(64, 1024 // width, triton.next_power_of_2(nodes + 1))
    ancestors_kernel[(requests, triton.cdiv(nodes + 1, tile))](
        *out, parents, count, nodes, words, TILE=tile, WORDS=width, num_warps=2
    )
