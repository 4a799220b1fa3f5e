"""One recipe per model runner and range of versions; here is what all of them hook into."""

from __future__ import annotations

from ..recipe import Anchor

SHARED = (
    Anchor(
        "vllm/engine/arg_utils.py",
        "EngineArgs.create_engine_config",
        "config.create_engine_config",
        ("self", "usage_context"),
    ),
    Anchor(
        "vllm/config/vllm.py",
        "VllmConfig.num_speculative_tokens",
        "config.num_speculative_tokens",
        ("self",),
    ),
    Anchor(
        "vllm/model_executor/layers/attention/attention.py",
        "unified_attention_with_output",
        "attention.forward",
        ("query", "key", "value", "output", "layer_name"),
    ),
)
