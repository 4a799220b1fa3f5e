"""The V2 model runner: the seams whose names and first parameters stayed the same since 0.24.0.

Every function is wrapped and none is replaced, so that no body has to be known.
"""

from __future__ import annotations

from ..recipe import Anchor, Recipe
from . import SHARED

_RUNNER = "vllm/v1/worker/gpu/model_runner.py"
_DRAFTS = "vllm/v1/worker/gpu/spec_decode"

RECIPE = Recipe(
    name="v2",
    runner="v2-runner",
    lower="0.24.0",
    upper="0.34.0",
    anchors=(
        Anchor(_RUNNER, "GPUModelRunner.__init__", "v2.init", ("self", "vllm_config", "device")),
        Anchor(
            _RUNNER,
            "GPUModelRunner.initialize_kv_cache",
            "v2.initialize_kv_cache",
            ("self", "kv_cache_config"),
        ),
        Anchor(
            _RUNNER, "GPUModelRunner.add_requests", "v2.add_requests", ("self", "scheduler_output")
        ),
        Anchor(_RUNNER, "GPUModelRunner.prepare_attn", "v2.prepare_attn", ("self", "input_batch")),
        Anchor(
            f"{_DRAFTS}/rejection_sampler.py",
            "RejectionSampler.__call__",
            "v2.sample",
            ("self", "logits", "input_batch"),
        ),
        Anchor(
            f"{_DRAFTS}/rejection_sampler_utils.py",
            "rejection_sample",
            "v2.rejection_sample",
            (
                "target_logits",
                "draft_logits",
                "draft_sampled",
                "cu_num_logits",
                "pos",
                "idx_mapping",
            ),
        ),
        Anchor(
            f"{_DRAFTS}/speculator.py",
            "DraftModelSpeculator.sample_draft",
            "v2.sample_draft",
            ("self", "hidden_states"),
        ),
        *SHARED,
    ),
)
