"""A custom logits processor of the V2 runner, for requests that ask for it in `extra_args`.

It works where the engine runs, which knows nothing of this project's tests.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor


class SecondBest(LogitsProcessor):  # type: ignore[misc]
    """After every even token, take the best one away."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        """Take no slot yet."""
        super().__init__(vllm_config, req_states)
        self.takes = torch.zeros(req_states.max_num_reqs, dtype=torch.bool)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Take the requests that ask for it."""
        asked = bool((sampling_params.extra_args or {}).get("second best"))
        self.takes[req_idx] = asked
        return asked

    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Look at the token before each row, and at the best one."""
        taken = self.takes[ctx.expanded_idx_mapping.long()] & (ctx.input_ids % 2 == 0)
        rows = taken.nonzero()[:, 0]
        logits[rows, logits[rows].argmax(-1)] = -float("inf")
        return logits
