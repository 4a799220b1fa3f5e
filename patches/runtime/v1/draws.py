"""The target's token at every row: its argmax, or one draw with the request's own parameters."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from ..transfer import to_device


def targets(logits: torch.Tensor, drafts: list[int], sampling: Any) -> torch.Tensor:
    """One token per logits row, [rows] int64.

    Args:
        logits: [rows, V], root and nodes of each request.
        drafts: drafted rows of each request.
        sampling: vLLM's `SamplingMetadata` of the batch.
    """
    # The argmax; on a CPU, torch finds it several times as fast in this way.
    greedy = logits.max(-1).indices
    if sampling.all_greedy:
        return greedy
    lengths = [drafted + 1 for drafted in drafts]
    repeats = to_device(lengths, logits.device)
    request = torch.repeat_interleave(repeats, output_size=sum(lengths))
    temperature = sampling.temperature.index_select(0, request)
    drawn = _draw(logits, temperature, request, sampling, lengths)
    return torch.where(temperature > 0, drawn, greedy)


def _draw(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    request: torch.Tensor,
    sampling: Any,
    lengths: list[int],
) -> torch.Tensor:
    """Draw by racing exponentials: the largest p / q of independent exponentials q has law p."""
    # vLLM is importable where a runner runs.
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

    scaled = logits.to(torch.float32) / torch.where(temperature > 0, temperature, 1.0)[:, None]
    top_k = None if sampling.top_k is None else sampling.top_k.index_select(0, request)
    top_p = None if sampling.top_p is None else sampling.top_p.index_select(0, request)
    probs: torch.Tensor = apply_top_k_top_p(scaled, top_k, top_p).softmax(-1, dtype=torch.float32)
    race = torch.empty_like(probs).exponential_()
    ends = list(itertools.accumulate(lengths))
    for index, generator in sampling.generators.items():
        if lengths[index] > 1:
            race[ends[index] - lengths[index] : ends[index]].exponential_(generator=generator)
    return (probs / race).argmax(-1)
