"""What the decorators in vLLM call: one handler per hook name.

A handler gets the decorated function first, then the function's own arguments. Where nothing is
configured it does one cheap check and calls the function; it imports nothing of vLLM when it is
loaded, because vLLM's own modules load it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from . import attention, budget, start
from .attached import UNKNOWN, note
from .v1 import runner as v1
from .v1 import width
from .v2 import runner as v2

Function = TypeVar("Function", bound=Callable[..., Any])
Handler = Callable[..., Any]

HANDLERS: dict[str, Handler] = {
    # EngineArgs
    "config.create_engine_config": start.create_engine_config,
    # VllmConfig.num_speculative_tokens (property getter)
    "config.num_speculative_tokens": budget.num_speculative_tokens,
    # unified_attention_with_output
    "attention.forward": attention.forward,
    # Scheduler of v1/core/sched, before 0.24.0
    "v1.scheduler_init": width.scheduler_init,
    # GPUModelRunner of v1/worker
    "v1.init": v1.init,
    "v1.initialize_kv_cache": v1.initialize_kv_cache,
    "v1.prepare_inputs": v1.prepare_inputs,
    "v1.sample": v1.sample,
    "v1.propose": v1.propose,
    # rejection_sample and expand_batch_to_tokens, functions of v1/sample/rejection_sampler.py
    "v1.rejection_sample": v1.rejection_sample,
    "v1.expand_batch_to_tokens": v1.expand_batch_to_tokens,
    # SpecDecodeBaseProposer._greedy_sample
    "v1.draft_logits": v1.draft_logits,
    # GPUModelRunner of v1/worker/gpu
    "v2.init": v2.init,
    "v2.initialize_kv_cache": v2.initialize_kv_cache,
    "v2.add_requests": v2.add_requests,
    "v2.prepare_attn": v2.prepare_attn,
    # RejectionSampler.__call__, and rejection_sample of its utilities
    "v2.sample": v2.sample,
    "v2.rejection_sample": v2.rejection_sample,
    # DraftModelSpeculator.sample_draft
    "v2.sample_draft": v2.sample_draft,
}


def hook(name: str) -> Callable[[Function], Function]:
    """A decorator that routes a function through the handler of this name.

    Where there is no such handler, the patch and the runtime do not belong together: vLLM stays
    stock, and refuses to start if trees are configured.
    """
    if name not in HANDLERS:
        UNKNOWN.append(name)
        return lambda function: function
    handler = HANDLERS[name]

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            return handler(function, *args, **kwargs)

        note(name, function, hooked)
        # The wrapper keeps the function's signature.
        return hooked  # type: ignore[return-value]

    return decorate
