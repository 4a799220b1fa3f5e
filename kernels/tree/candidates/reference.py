"""Candidates from logits, one row at a time in float64."""

from __future__ import annotations

import math

import torch


def candidates(
    logits: torch.Tensor, k: int, temperature: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """See `candidates`; returns ids and logp."""
    requests, positions, _ = logits.shape
    warmth = [1.0] * requests if temperature is None else temperature.tolist()
    ids, logp = [], []
    for request, heat in zip(logits.tolist(), warmth, strict=True):
        for line in request:
            best = best_of(line, k, heat)
            ids.append([token for token, _ in best])
            logp.append([weight for _, weight in best])
    shape, device = (requests, positions, k), logits.device
    return (
        torch.tensor(ids, dtype=torch.int32, device=device).reshape(shape),
        torch.tensor(logp, dtype=torch.float32, device=device).reshape(shape),
    )


def best_of(line: list[float], k: int, temperature: float) -> list[tuple[int, float]]:
    """The `k` best tokens of one position with their log-probabilities, best first."""
    most = torch.finfo(torch.float32).max
    scale = temperature if 0 < temperature < math.inf else 1.0
    # NaN compares false as well, and +inf is as good as the largest number.
    value = [min(x, most) / scale if x > -math.inf else -math.inf for x in line]
    order = sorted(range(len(value)), key=lambda token: -value[token])[:k]
    top = value[order[0]]
    if top == -math.inf:
        return [(token, -math.inf) for token in order]
    # Subtracted one after the other: beside a huge `top` the logarithm would round away.
    log_sum = math.log(sum(math.exp(x - top) for x in value))
    return [(token, value[token] - top - log_sum) for token in order]
