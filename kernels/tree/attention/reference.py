"""Tree attention in float64, one request, one row and one head at a time.

The other forms are compared with this one, so it favours being checked by eye over speed.
"""

from __future__ import annotations

import torch


def attend(
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
) -> torch.Tensor:
    """Attend with every query row; shapes as in `tree_attention`, the result is float64."""
    out = torch.zeros(query.shape, dtype=torch.float64, device=query.device)
    group = query.shape[1] // key_cache.shape[2]
    starts = query_start.tolist()
    for request, seq_len in enumerate(seq_lens.tolist()):
        first, rows = starts[request], starts[request + 1] - starts[request]
        for row in range(rows):
            words = None if is_chain[request] else visible[request].tolist()
            positions = positions_seen(row, rows, seq_len, words)
            if not positions:
                continue
            for head in range(query.shape[1]):
                keys, values = (
                    read(cache, block_table[request], positions, head // group)
                    for cache in (key_cache, value_cache)
                )
                out[first + row, head] = attend_one(query[first + row, head], keys, values, scale)
    return out


def positions_seen(row: int, rows: int, seq_len: int, words: list[list[int]] | None) -> list[int]:
    """Positions that one row sees: the context, then own rows; `words` is None in a chain."""
    context = max(seq_len - rows, 0)
    own = [j for j in range(rows) if sees(row, j, words)]
    return [p for p in [*range(context), *(context + j for j in own)] if p < seq_len]


def sees(row: int, other: int, words: list[list[int]] | None) -> bool:
    """Whether a row sees another row of its own step; a row always sees itself."""
    if row == other:
        return True
    if words is None:
        return other < row
    if row >= len(words) or other // 64 >= len(words[row]):
        return False
    return bool(words[row][other // 64] >> (other % 64) & 1)


def read(cache: torch.Tensor, table: torch.Tensor, positions: list[int], head: int) -> torch.Tensor:
    """One head's keys or values [positions, dim] in float64, read through the block table."""
    size = cache.shape[1]
    blocks = [int(table[p // size]) for p in positions]
    slots = [p % size for p in positions]
    return cache[blocks, slots, head].double()


def attend_one(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float
) -> torch.Tensor:
    """Softmax attention of one query vector [dim] over [positions, dim]."""
    scores = keys @ query.double() * scale
    weights = torch.exp(scores - scores.max())
    return weights @ values / weights.sum()
