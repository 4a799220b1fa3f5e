"""Candidates from logits in blocks of the vocabulary, without a host sync."""

from __future__ import annotations

from collections.abc import Iterator

import torch

# Tokens per block: what is held at once besides the logits is [R, D, BLOCK].
BLOCK = 8192
MOST = torch.finfo(torch.float32).max
LEAST = torch.finfo(torch.float32).min


def candidates(
    logits: torch.Tensor, k: int, temperature: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """See `candidates`; returns ids and logp."""
    scale = None
    if temperature is not None:
        warm = (temperature > 0) & (temperature < torch.inf)
        scale = torch.where(warm, temperature, 1.0)[:, None, None]
    parts = [part(block, first, k, scale) for first, block in blocks(logits)]
    values, tokens, tops, totals = (torch.cat(each, -1) for each in zip(*parts, strict=True))
    # Where nothing is possible, any finite offset gives a sum of 0.
    top = tops.amax(-1, keepdim=True).clamp_(min=LEAST)
    total = (totals * (tops - top).exp_()).sum(-1, keepdim=True)
    value, token = in_order(values, tokens, k)
    logp = (scaled(value, scale) - top) - total.log()
    # Minus infinity less minus infinity: the position has no possible token.
    return token.to(torch.int32), logp.nan_to_num_(nan=-torch.inf, neginf=-torch.inf)


def part(
    block: torch.Tensor, first: int, k: int, scale: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """A block's best logits and their tokens, its largest scaled logit, and the exponentials' sum.

    The sum is that of the scaled logits less the largest. The block is written over.
    """
    value, index = largest(block, min(k, block.shape[-1]))
    top = scaled(value.amax(-1, keepdim=True), scale)
    total = scaled(block, scale).sub_(top.clamp(min=LEAST)).exp_().sum(-1, keepdim=True)
    return value, index + first, top, total


def blocks(logits: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """First token and float32 logits of every block, with NaN as -inf and +inf as the largest.

    Each block is a copy that its taker may write to.
    """
    for first in range(0, logits.shape[-1], BLOCK):
        block = logits[..., first : first + BLOCK].to(torch.float32, copy=True)
        yield first, block.nan_to_num_(nan=-torch.inf, posinf=MOST, neginf=-torch.inf)


def scaled(value: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """Logits over the temperature, in place; what overflows stays finite."""
    return value if scale is None else value.div_(scale).clamp_(max=MOST)


def largest(block: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `k` largest values and their places, in any order."""
    if k == 1:
        # Much quicker than to select.
        value, index = block.max(-1, keepdim=True)
    else:
        value, index = block.topk(k, sorted=False)
    return value, index


def in_order(
    values: torch.Tensor, tokens: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The `k` largest of all blocks' candidates; the order among equal ones is that of the ids."""
    value, index = largest(values, k)
    token, order = tokens.gather(-1, index).sort(-1)
    value, by_value = value.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return value, token.gather(-1, by_value)
