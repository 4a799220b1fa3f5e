"""The target's token at every row: its argmax, or the draw that vLLM makes at that position.

The V2 runner's noise depends on a request's seed and a position alone, and a node's position is its
depth. So what is walked is what the request would draw without speculation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch


def targets(sampler: Any, logits: torch.Tensor, input_batch: Any) -> torch.Tensor:
    """One token per logits row, [rows] int64.

    Args:
        sampler: vLLM's `Sampler`, which is asked as if every row were a request's only one.
        logits: [rows, V], root and nodes of each request.
        input_batch: vLLM's `InputBatch`, whose positions are the nodes' depths.
    """
    lines = input_batch.idx_mapping_np
    if not sampler.sampling_states.temperature.np[lines].any():
        return logits.argmax(-1)
    given = {
        "logits": logits,
        "expanded_idx_mapping": input_batch.expanded_idx_mapping,
        "idx_mapping": input_batch.idx_mapping,
        "idx_mapping_np": lines,
        "pos": input_batch.positions[input_batch.logits_indices],
        "input_ids": input_batch.input_ids[input_batch.logits_indices],
        "expanded_local_pos": input_batch.expanded_local_pos,
    }
    asked = _asked(type(sampler).sample)
    if "seq_lens_upper_bound_np" in asked:
        given["seq_lens_upper_bound_np"] = input_batch.seq_lens_cpu_upper_bound.numpy()
    drawn: torch.Tensor
    drawn, _ = sampler.sample(**{name: value for name, value in given.items() if name in asked})
    return drawn


@functools.cache
def _asked(function: Callable[..., Any]) -> frozenset[str]:
    """Names of a function's parameters: releases differ in what they ask for."""
    return frozenset(inspect.signature(function).parameters)
