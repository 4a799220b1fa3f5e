"""Candidates from logits in blocks of the vocabulary, without a host sync."""

from __future__ import annotations

from collections.abc import Iterator

import torch

# Tokens per block: what is held at once besides the logits is [R, D, BLOCK].
BLOCK = 8192


def candidates(
    logits: torch.Tensor, k: int, temperature: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """See `candidates`; returns ids and logp."""
    scale = None
    if temperature is not None:
        warm = (temperature > 0) & (temperature < torch.inf)
        scale = torch.where(warm, temperature, 1.0)[:, None, None]
    value, token = best(logits, k)
    value = scaled(value, scale)
    # Where nothing is possible, any finite offset gives a sum of 0.
    top = value[..., :1].clamp(min=torch.finfo(torch.float32).min)
    total = torch.zeros_like(top)
    for _, block in blocks(logits):
        total += (scaled(block, scale) - top).exp_().sum(-1, keepdim=True)
    logp = (value - top) - total.log()
    # Minus infinity less minus infinity: the position has no possible token.
    return token.to(torch.int32), logp.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)


def blocks(logits: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """First token and float32 logits of every block, with NaN as -inf and +inf as the largest."""
    most = torch.finfo(torch.float32).max
    for first in range(0, logits.shape[-1], BLOCK):
        block = logits[..., first : first + BLOCK].to(torch.float32)
        yield first, block.nan_to_num(nan=-torch.inf, posinf=most, neginf=-torch.inf)


def scaled(value: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """Logits over the temperature; what overflows stays finite."""
    if scale is None:
        return value
    most = torch.finfo(torch.float32).max
    return (value / scale).clamp_(max=most)


def best(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `k` largest logits and their tokens; the order among equal ones is that of the ids."""
    values, tokens = [], []
    for first, block in blocks(logits):
        value, index = block.topk(min(k, block.shape[-1]), sorted=False)
        values.append(value)
        tokens.append(index + first)
    value, index = torch.cat(values, -1).topk(k, sorted=False)
    token = torch.cat(tokens, -1).gather(-1, index)
    token, order = token.sort(-1)
    value, by_value = value.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return value, token.gather(-1, by_value)
