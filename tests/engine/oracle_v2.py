"""A change of vLLM for one case: the V2 runner's trees come from the oracle, not from its drafter.

The V2 runner takes no proposer class. What the runtime would make of the drafter's logits is
replaced; all that comes before and after is what it always is.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from ddtree_runtime.pending import Drafted
from ddtree_runtime.v2 import runner as hooks
from vllm.v1.worker.gpu.model_runner import GPUModelRunner

_DRAFTS_OF = hooks.drafts_of
_INITIALIZE = GPUModelRunner.initialize_kv_cache


def make() -> None:
    """Let an oracle draft for the next runner."""
    # Beside this file, which is no part of a package where the engine runs.
    oracle = importlib.import_module("oracle").Oracle(None)
    runners: list[Any] = []

    def initialize(runner: Any, *args: Any, **named: Any) -> None:
        runners.append(runner)
        _INITIALIZE(runner, *args, **named)

    def drafts_of(
        engine: Any, chain: torch.Tensor, capture: object, requests: list[str]
    ) -> torch.Tensor:
        trees = [oracle.tree(oracle.continuation(_text(runners[-1], one))) for one in requests]
        width = engine.settings.budget
        drafted = Drafted(
            torch.tensor([_padded(tokens, width) for tokens, _ in trees], dtype=torch.int32),
            torch.tensor([_padded(parents, width) for _, parents in trees], dtype=torch.int32),
            torch.tensor([len(tokens) for tokens, _ in trees], dtype=torch.int32),
        )
        engine.pending.record(drafted, requests)
        drafts: torch.Tensor = drafted.tokens.to(chain.dtype)
        return drafts

    GPUModelRunner.initialize_kv_cache = initialize
    hooks.drafts_of = drafts_of


def undo() -> None:
    """Give vLLM and the runtime their own functions back."""
    GPUModelRunner.initialize_kv_cache = _INITIALIZE
    hooks.drafts_of = _DRAFTS_OF


def _text(runner: Any, request: str) -> list[int]:
    """All tokens of a request so far."""
    states = runner.req_states
    line = states.req_id_to_index[request]
    tokens: list[int] = states.all_token_ids.gpu[line, : int(states.total_len.gpu[line])].tolist()
    return tokens


def _padded(numbers: list[int], width: int) -> list[int]:
    return numbers + [0] * (width - len(numbers))
