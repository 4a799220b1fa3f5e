"""The target's token at every row: its argmax, or the draw that vLLM makes at that position.

The V2 runner's noise depends on a request's seed and a position alone, and a node's position is its
depth. So what is walked is what the request would draw without speculation.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch


def targets(sampler: Any, logits: torch.Tensor, input_batch: Any) -> torch.Tensor:
    """One token per logits row, [rows] int64.

    Args:
        sampler: vLLM's `Sampler`.
        logits: [rows, V], root and nodes of each request.
        input_batch: vLLM's `InputBatch`, whose positions are the nodes' depths.
    """
    states = sampler.sampling_states
    if not states.temperature.np[input_batch.idx_mapping_np].any():
        return logits.argmax(-1)
    # vLLM is importable where a runner runs.
    from vllm.v1.worker.gpu.sample.gumbel import gumbel_sample

    pos = input_batch.positions[input_batch.logits_indices]
    drawn: torch.Tensor = gumbel_sample(
        _processed(sampler, logits, input_batch, pos),
        input_batch.expanded_idx_mapping,
        states.temperature.gpu,
        states.seeds.gpu,
        pos,
        apply_temperature=False,
    )
    return drawn


def _processed(
    sampler: Any, logits: torch.Tensor, input_batch: Any, pos: torch.Tensor
) -> torch.Tensor:
    """Logits after the requests' sampling parameters; releases differ in what they ask for."""
    given = {
        "logits": logits,
        "expanded_idx_mapping": input_batch.expanded_idx_mapping,
        "idx_mapping": input_batch.idx_mapping,
        "idx_mapping_np": input_batch.idx_mapping_np,
        "pos": pos,
        "input_ids": input_batch.input_ids[input_batch.logits_indices],
        "expanded_local_pos": input_batch.expanded_local_pos,
        "seq_lens_upper_bound_np": input_batch.seq_lens_cpu_upper_bound.numpy(),
    }
    function = sampler.apply_sampling_params
    asked = inspect.signature(function).parameters
    processed: torch.Tensor = function(**{name: given[name] for name in given if name in asked})
    return processed
