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


def install() -> None:
    """Make the functions below operators of the extension's name, where it has not loaded."""
    for name, function in OPERATORS.items():
        setattr(torch.ops._C, name, function)
    # Later releases do not call these on a CPU, where they raise.
    for name in ("synchronize", "empty_cache"):
        setattr(torch.accelerator, name, nothing)


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
    """Causal attention over paged context, request by request."""
    table = rest[3]
    bounds = starts.tolist()
    for request, (first, last) in enumerate(itertools.pairwise(bounds)):
        seen, rows = int(lengths[request]), last - first
        blocks = table[request, : -(-seen // keys.shape[2])].long()
        key = tiled(keys)[blocks].permute(1, 0, 2, 4, 3).flatten(1, 3)[:, :seen]
        value = values[blocks].transpose(0, 1).flatten(1, 2)[:, :seen]
        row = torch.arange(seen - rows, seen)
        mask = torch.arange(seen)[None] <= row[:, None] if causal else None
        found = scaled_dot_product_attention(
            query[first:last].transpose(0, 1)[None],
            key[None],
            value[None],
            attn_mask=mask,
            scale=scale,
            enable_gqa=True,
        )
        output[first:last] = found[0].transpose(0, 1)


def rejection_greedy(
    output: torch.Tensor,
    ends: torch.Tensor,
    drafts: torch.Tensor,
    targets: torch.Tensor,
    bonus: torch.Tensor,
    is_greedy: torch.Tensor | None,
    width: int,
) -> None:
    """Take target tokens up to the first draft that is none, else the bonus token too."""
    del width
    first = 0
    for line, last in enumerate(ends.tolist()):
        if is_greedy is None or bool(is_greedy[line]):
            same = (drafts[first:last] == targets[first:last]).long().cumprod(0)
            taken = int(same.sum())
            line_of = torch.cat([targets[first:last], bonus[line].flatten()])[: taken + 1]
            output[line, : taken + 1] = line_of
        first = last


def next_tokens(
    sampled: torch.Tensor,
    discarded: torch.Tensor,
    backup: torch.Tensor,
    out: torch.Tensor,
    valid: torch.Tensor,
    vocabulary: int,
    *rest: Any,
) -> None:
    """The last valid token of every request and how many there are; else the backup."""
    del rest
    requests, width = sampled.shape
    good = (sampled >= 0) & (sampled < vocabulary) & ~discarded[:requests, None]
    last = torch.where(good, torch.arange(width), -1).amax(1)
    found = sampled.gather(1, last.clamp(min=0)[:, None])[:, 0]
    out.copy_(torch.where(last >= 0, found, backup[:requests]))
    valid.copy_(good.sum(1))


def rows_to_sample(
    ends: torch.Tensor,
    valid: torch.Tensor,
    starts: torch.Tensor,
    out: torch.Tensor,
    rejected: torch.Tensor,
    requests: int,
) -> None:
    """The last row of every request that is not rejected, and how many are."""
    drafted = ends.diff(prepend=ends.new_zeros(1))
    rejected.copy_(torch.where(drafted > 0, drafted + 1 - valid, 0))
    out.copy_(starts[1 : requests + 1] - 1 - rejected)


def drafter_inputs(
    ids: torch.Tensor,
    positions: torch.Tensor,
    following: torch.Tensor,
    out_ids: torch.Tensor,
    out_positions: torch.Tensor,
    is_rejected: torch.Tensor,
    is_masked: torch.Tensor,
    sampled_rows: torch.Tensor,
    hidden_rows: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
    padding: int,
    *rest: Any,
) -> None:
    """A request's accepted rows, then its newest token, then room for what was rejected.

    Raises:
        NotImplementedError: a drafter asks for another form than a draft model does.
    """
    del hidden_rows
    if rest[2:] != (1, False):
        raise NotImplementedError(f"expected one more row and no shift, found {rest[2:]}")
    for line, (first, last) in enumerate(itertools.pairwise(starts.tolist())):
        kept = int(ends[line]) - first + 1
        rows = slice(first + line, last + line + 1)
        place = torch.arange(last - first + 1)
        out_ids[rows] = padding
        out_ids[rows][:kept] = ids[first : first + kept]
        out_ids[rows][kept] = following[line]
        out_positions[rows] = torch.where(place <= kept, positions[first] + place, 0)
        is_rejected[rows] = place > kept
        is_masked[rows] = False
        sampled_rows[line] = first + line + kept


def next_slots(
    positions: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
    out_positions: torch.Tensor,
    slots: torch.Tensor,
    block: int,
    longest: int,
    padding: int,
) -> None:
    """One position further, with the slot that belongs to it; the start again past the longest."""
    beyond = positions + 1 >= longest
    place = torch.where(beyond, 0, positions + 1)
    blocks = table.gather(1, (place // block)[:, None].long())[:, 0]
    requests = len(positions)
    out_positions[:requests] = place
    slots[:requests] = torch.where(beyond, padding, blocks.long() * block + place % block)
    lengths[:requests] = torch.where(beyond, 1, lengths[:requests] + 1)


OPERATORS = {
    "init_cpu_memory_env": nothing,
    "init_cpu_threads_env": nothing,
    "get_scheduler_metadata": no_schedule,
    "silu_and_mul": silu_and_mul,
    "rotary_embedding": rotary_embedding,
    "compute_slot_mapping_kernel_impl": compute_slot_mapping,
    "cpu_attn_reshape_and_cache": reshape_and_cache,
    "cpu_attention_with_kv_cache": attention,
    "rejection_greedy_sample_kernel_impl": rejection_greedy,
    "eagle_prepare_next_token_padded_kernel_impl": next_tokens,
    "eagle_prepare_inputs_padded_kernel_impl": rows_to_sample,
    "copy_and_expand_eagle_inputs_kernel_impl": drafter_inputs,
    "eagle_step_slot_mapping_metadata_kernel_impl": next_slots,
}
