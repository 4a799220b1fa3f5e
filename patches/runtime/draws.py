"""The target's token at every row: its argmax, or one draw with the request's own parameters."""

from __future__ import annotations

from typing import Any

import torch


def targets(
    logits: torch.Tensor, request: torch.Tensor, sampling: Any, spans: list[tuple[int, int]]
) -> torch.Tensor:
    """One token per logits row, [rows] int64.

    Args:
        logits: [rows, V].
        request: [rows] int64, the request of each row.
        sampling: vLLM's `SamplingMetadata` of the batch.
        spans: first and last + 1 row of each request.
    """
    greedy = logits.argmax(-1)
    if sampling.all_greedy:
        return greedy
    temperature = sampling.temperature.index_select(0, request)
    drawn = _draw(logits, temperature, request, sampling, spans)
    return torch.where(temperature > 0, drawn, greedy)


def _draw(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    request: torch.Tensor,
    sampling: Any,
    spans: list[tuple[int, int]],
) -> torch.Tensor:
    """Draw by racing exponentials: the largest p / q of independent exponentials q has law p."""
    # vLLM is importable where a runner runs.
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

    scaled = logits.to(torch.float32) / torch.where(temperature > 0, temperature, 1.0)[:, None]
    top_k = None if sampling.top_k is None else sampling.top_k.index_select(0, request)
    top_p = None if sampling.top_p is None else sampling.top_p.index_select(0, request)
    probs: torch.Tensor = apply_top_k_top_p(scaled, top_k, top_p).softmax(-1, dtype=torch.float32)
    race = torch.empty_like(probs).exponential_()
    for index, generator in sampling.generators.items():
        first, last = spans[index]
        if last - first > 1:
            race[first:last].exponential_(generator=generator)
    return (probs / race).argmax(-1)
