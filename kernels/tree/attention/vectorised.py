"""Tree attention in plain torch operators, without a host synchronisation.

With the lengths on the host every request is one (or a few) scaled dot products of its own
size; without them the batch is padded to its longest request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.nn.functional import scaled_dot_product_attention

# Rows of a long chain that share one product: the keys after the last of them are left out, and
# the mask of the product stays small.
CHAIN_ROWS = 128


def attend_each(
    out: torch.Tensor,
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    visible: torch.Tensor,
    is_chain: torch.Tensor,
    *,
    scale: float,
    query_lens: Sequence[int],
    seq_lens: Sequence[int],
) -> None:
    """Attend request by request, with host lengths; shapes as in `tree_attention`."""
    first = 0
    for request, (rows, seq_len) in enumerate(zip(query_lens, seq_lens, strict=True)):
        last = first + rows
        if rows:
            keys = gather(key_cache, block_table[request], seq_len)
            values = gather(value_cache, block_table[request], seq_len)
            for low, high, mask in products(visible[request], is_chain[request], rows):
                # A chain's product ends at its last row's key, a tree's at the request's.
                end = seq_len - rows + mask.shape[1]
                out[first + low : first + high] = attend_rows(
                    query[first + low : first + high], keys[:, :end], values[:, :end], mask, scale
                )
        first = last
    out[first:] = 0


def products(
    visible: torch.Tensor, is_chain: torch.Tensor, rows: int
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Rows [low, high) that share a product, and what they see of the own rows [high - low, own].

    Only as many own rows appear as the last of them can see. More rows than the words hold can
    only be a chain, so the host knows without reading `is_chain`.
    """
    if 1 < rows <= min(visible.shape[0], visible.shape[1] * 64):
        yield 0, rows, own_mask(visible, is_chain, rows)
        return
    row = torch.arange(rows, device=visible.device)
    for low in range(0, rows, CHAIN_ROWS):
        high = min(low + CHAIN_ROWS, rows)
        yield low, high, row[None, :high] <= row[low:high, None]


def own_mask(visible: torch.Tensor, is_chain: torch.Tensor, rows: int) -> torch.Tensor:
    """What each own row sees of the others: bool [..., rows, rows] from words [..., Q, W].

    `is_chain` has the leading dimensions. A row always sees itself.
    """
    row = torch.arange(rows, device=visible.device)
    seen = row[None, :] == row[:, None]
    known = min(rows, visible.shape[-2])
    held = min(rows, visible.shape[-1] * 64)
    words = visible[..., :known, : -(-held // 64)]
    bits = (words[..., None] >> torch.arange(64, device=visible.device)) & 1
    marked = torch.zeros((*visible.shape[:-2], rows, rows), dtype=torch.bool, device=row.device)
    marked[..., :known, :held] = bits.flatten(-2)[..., :held] != 0
    below = row[None, :] < row[:, None]
    return seen | torch.where(is_chain[..., None, None], below, marked)


def gather(cache: torch.Tensor, table: torch.Tensor, length: int) -> torch.Tensor:
    """One request's keys or values [Hkv, length, dim], copied once, block by block."""
    blocks = -(-length // cache.shape[1])
    return cache.index_select(0, table[:blocks]).flatten(0, 1)[:length].transpose(0, 1)


def attend_rows(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attend with rows [n, Hq, dim] over [Hkv, S, dim]; `mask` [n, own] tells of the last keys.

    The heads that share a KV head become rows of one product, so keys are not repeated.
    """
    rows, heads, dim = query.shape
    kv_heads = keys.shape[0]
    group = heads // kv_heads
    folded = query.view(rows, kv_heads, group, dim).permute(1, 2, 0, 3)
    bias = None
    # A single row sees everything up to itself.
    if rows > 1:
        bias = query.new_zeros(group, rows, keys.shape[1])
        bias[..., keys.shape[1] - mask.shape[1] :].masked_fill_(~mask, float("-inf"))
        bias = bias.view(group * rows, keys.shape[1])
    result = scaled_dot_product_attention(
        folded.reshape(1, kv_heads, group * rows, dim),
        keys[None],
        values[None],
        attn_mask=bias,
        scale=scale,
    )
    return result.view(kv_heads, group, rows, dim).permute(2, 0, 1, 3).reshape(rows, heads, dim)


def attend_padded(
    out: torch.Tensor,
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    query_start: torch.Tensor,
    visible: torch.Tensor,
    is_chain: torch.Tensor,
    *,
    scale: float,
    max_query_len: int,
    max_seq_len: int,
) -> None:
    """Attend with every request padded to the longest; shapes as in `tree_attention`."""
    if max_query_len == 0 or max_seq_len == 0 or seq_lens.shape[0] == 0:
        out.zero_()
        return
    rows = query_start.diff()
    seen = seen_padded(rows, seq_lens, visible, is_chain, max_query_len, max_seq_len)
    live = torch.arange(max_seq_len, device=query.device) < seq_lens[:, None]
    keys = gather_padded(key_cache, block_table, live)
    values = gather_padded(value_cache, block_table, live)
    lane = query_start[:-1, None] + torch.arange(max_query_len, device=query.device)
    padded = query[lane.clamp(max=query.shape[0] - 1)]
    # A row that sees nothing is pointed at slot 0, and its result dropped below.
    something = seen.any(-1)
    seen[..., 0] |= ~something
    result = attend_batch(padded, keys, values, seen, scale)
    result = result * something[..., None, None]
    scatter_rows(out, result, query_start)


def seen_padded(
    rows: torch.Tensor,
    seq_lens: torch.Tensor,
    visible: torch.Tensor,
    is_chain: torch.Tensor,
    max_query_len: int,
    max_seq_len: int,
) -> torch.Tensor:
    """What every padded row sees of the padded context: bool [R, max_query_len, max_seq_len]."""
    context = (seq_lens - rows).clamp(min=0)
    position = torch.arange(max_seq_len, device=rows.device)
    own = position - context[:, None]
    inside = (own >= 0) & (own < rows[:, None]) & (position < seq_lens[:, None])
    among = own_mask(visible, is_chain, max_query_len)
    index = own.clamp(0, max_query_len - 1).long()[:, None, :].expand(-1, max_query_len, -1)
    seen = among.gather(2, index) & inside[:, None]
    seen |= (position < context[:, None])[:, None]
    real = torch.arange(max_query_len, device=rows.device) < rows[:, None]
    return seen & real[..., None]


def gather_padded(
    cache: torch.Tensor, block_table: torch.Tensor, live: torch.Tensor
) -> torch.Tensor:
    """Keys or values [R, Hkv, S, dim]; slots that are not live [R, S] read as 0.

    A dead slot may hold NaN, which a masked weight of 0 would not keep out.
    """
    size, length = cache.shape[1], live.shape[1]
    position = torch.arange(length, device=live.device)
    blocks = block_table[:, position // size].masked_fill(~live, 0).long()
    rows = cache[blocks, (position % size)[None]]
    return rows.masked_fill(~live[..., None, None], 0).transpose(1, 2)


def attend_batch(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    seen: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attend with [R, Q, Hq, dim] over [R, Hkv, S, dim]; `seen` is [R, Q, S]."""
    requests, rows, heads, dim = query.shape
    kv_heads = keys.shape[1]
    group = heads // kv_heads
    folded = query.view(requests, rows, kv_heads, group, dim).permute(0, 2, 3, 1, 4)
    bias = query.new_zeros(requests, group, rows, keys.shape[2])
    bias.masked_fill_(~seen[:, None], float("-inf"))
    result = scaled_dot_product_attention(
        folded.reshape(requests, kv_heads, group * rows, dim),
        keys,
        values,
        attn_mask=bias.view(requests, 1, group * rows, keys.shape[2]),
        scale=scale,
    )
    result = result.view(requests, kv_heads, group, rows, dim).permute(0, 3, 1, 2, 4)
    return result.reshape(requests, rows, heads, dim)


def scatter_rows(out: torch.Tensor, result: torch.Tensor, query_start: torch.Tensor) -> None:
    """Write padded rows [R, Q, Hq, dim] to `out` [T, Hq, dim]; rows of no request become 0."""
    lane = torch.arange(out.shape[0], device=out.device, dtype=query_start.dtype)
    request = torch.searchsorted(query_start, lane, right=True) - 1
    # Rows after the last request belong to none.
    owned = request < result.shape[0]
    request = request.clamp(max=result.shape[0] - 1)
    row = (lane - query_start[request]).clamp(max=result.shape[1] - 1)
    out.copy_(result[request, row].masked_fill(~owned[:, None, None], 0))
