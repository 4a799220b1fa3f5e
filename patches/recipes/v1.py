"""The V1 model runner: the seams whose names and parameters stayed the same since 0.24.0.

Every function is wrapped and none is replaced, so that no body has to be known.
"""

from __future__ import annotations

from ..recipe import Anchor, Recipe
from . import SHARED

_RUNNER = "vllm/v1/worker/gpu_model_runner.py"
_SAMPLER = "vllm/v1/sample/rejection_sampler.py"

RECIPE = Recipe(
    name="v1",
    runner="v1-runner",
    lower="0.24.0",
    upper="0.34.0",
    anchors=(
        Anchor(_RUNNER, "GPUModelRunner.__init__", "v1.init", ("self", "vllm_config")),
        Anchor(
            _RUNNER,
            "GPUModelRunner.initialize_kv_cache",
            "v1.initialize_kv_cache",
            ("self", "kv_cache_config"),
        ),
        Anchor(
            _RUNNER,
            "GPUModelRunner._prepare_inputs",
            "v1.prepare_inputs",
            ("self", "scheduler_output", "num_scheduled_tokens"),
        ),
        Anchor(
            _RUNNER,
            "GPUModelRunner._sample",
            "v1.sample",
            ("self", "logits", "spec_decode_metadata"),
        ),
        Anchor(
            _RUNNER,
            "GPUModelRunner.propose_draft_token_ids",
            "v1.propose",
            ("self", "scheduler_output", "sampled_token_ids"),
        ),
        Anchor(
            _SAMPLER,
            "rejection_sample",
            "v1.rejection_sample",
            (
                "draft_token_ids",
                "num_draft_tokens",
                "max_spec_len",
                "cu_num_draft_tokens",
                "draft_probs",
                "target_logits",
                "bonus_token_ids",
                "sampling_metadata",
            ),
        ),
        Anchor(
            _SAMPLER,
            "expand_batch_to_tokens",
            "v1.expand_batch_to_tokens",
            ("x", "cu_num_tokens", "num_tokens", "replace_from", "replace_to"),
        ),
        Anchor(
            "vllm/v1/spec_decode/llm_base_proposer.py",
            "SpecDecodeBaseProposer._greedy_sample",
            "v1.draft_logits",
            ("self", "hidden_states"),
        ),
        *SHARED,
    ),
)
