"""What vLLM's compiled extension does for a small dense model on a CPU, in plain torch.

A cache packs a block's keys in tiles of slots, element by element, as the extension does in one
way or another, so that whoever takes a block for rows of slots is found out.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention, silu

# Slots per tile of a block's keys.
TILE = 16


def nothing(*arguments: Any) -> str:
    """Set up no memory and bind no threads."""
    del arguments
    return "not bound"


def no_schedule(*arguments: Any) -> torch.Tensor:
    """Attention here needs no plan of its work."""
    del arguments
    return torch.zeros(1)


def silu_and_mul(out: torch.Tensor, x: torch.Tensor) -> None:
    """The first half's SiLU times the second half."""
    gate, up = x.chunk(2, dim=-1)
    out.copy_(silu(gate) * up)


def rms_norm(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Rows over their root mean square, times the weight."""
    out.copy_(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight)


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    table: torch.Tensor,
    halves: bool,
) -> None:
    """Rotate the rows of query and key in place; `table` holds cosines, then sines."""
    cosine, sine = table[positions.flatten()].chunk(2, dim=-1)
    for rows in (query, key):
        if rows is None:
            continue
        heads = rows.view(len(cosine), -1, head_size)[..., : 2 * cosine.shape[-1]]
        split = heads.view(*heads.shape[:-1], *((2, -1) if halves else (-1, 2)))
        first, second = split.unbind(-2 if halves else -1)
        cos, sin = cosine[:, None], sine[:, None]
        rotated = (first * cos - second * sin, second * cos + first * sin)
        split.copy_(torch.stack(rotated, -2 if halves else -1))


def compute_slot_mapping(
    starts: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    slots: torch.Tensor,
    block: int,
) -> None:
    """The slot of every row: its position's place in its request's blocks."""
    lengths = starts.diff()
    request = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    place = positions[: len(request)]
    slots[: len(request)] = table[request, place // block].long() * block + place % block


def reshape_and_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    *rest: Any,
) -> None:
    """Write rows into their slots; a slot below 0 has no row."""
    del rest
    block = keys.shape[2]
    used = slots[: len(key)] >= 0
    slot = slots[: len(key)][used]
    inside = slot % block
    tiled(keys)[slot // block, :, inside // TILE, :, inside % TILE] = key[used]
    values[slot // block, :, inside] = value[used]


def tiled(keys: torch.Tensor) -> torch.Tensor:
    """The keys, [blocks, heads, block, dim], as [blocks, heads, tiles, dim, TILE]."""
    blocks, heads, block, dim = keys.shape
    return keys.view(blocks, heads, block // TILE, dim, TILE)


def attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    output: torch.Tensor,
    starts: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
    causal: bool,
    *rest: Any,
) -> None:
    """Attention over paged context, request by request.

    The window before the block table is one number or two; from 0.24.0 on, what follows says for
    each request whether it is causal, if they differ.
    """
    at = next(n for n, one in enumerate(rest) if isinstance(one, torch.Tensor) and one.dim() == 2)
    table, told = rest[at], rest[at + 4] if at + 4 < len(rest) else None
    each = told.tolist() if isinstance(told, torch.Tensor) else [causal] * len(lengths)
    bounds = starts.tolist()
    for request, (first, last) in enumerate(itertools.pairwise(bounds)):
        seen, rows = int(lengths[request]), last - first
        blocks = table[request, : -(-seen // keys.shape[2])].long()
        key = tiled(keys)[blocks].permute(1, 0, 2, 4, 3).flatten(1, 3)[:, :seen]
        value = values[blocks].transpose(0, 1).flatten(1, 2)[:, :seen]
        row = torch.arange(seen - rows, seen)
        mask = torch.arange(seen)[None] <= row[:, None] if each[request] else None
        found = scaled_dot_product_attention(
            query[first:last].transpose(0, 1)[None],
            key[None],
            value[None],
            attn_mask=mask,
            scale=scale,
            enable_gqa=True,
        )
        output[first:last] = found[0].transpose(0, 1)


OPERATORS = {
    "init_cpu_memory_env": nothing,
    "init_cpu_threads_env": nothing,
    "get_scheduler_metadata": no_schedule,
    "silu_and_mul": silu_and_mul,
    "rms_norm": rms_norm,
    "rotary_embedding": rotary_embedding,
    "compute_slot_mapping_kernel_impl": compute_slot_mapping,
    "cpu_attn_reshape_and_cache": reshape_and_cache,
    "cpu_attention_with_kv_cache": attention,
}
