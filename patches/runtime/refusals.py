"""What trees cannot work with yet: refused when the engine starts, never while it serves."""

from __future__ import annotations

import ast
import functools
import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any

from .config import Settings
from .non_causal import target_has_no_backend
from .update import is_known

METHODS = ("ngram", "draft_model", "eagle", "eagle3", "mtp", "dflash", "custom_class")
# Of these, what the V2 model runner drafts with a model whose logits can be seen.
V2_METHODS = ("draft_model", "eagle", "eagle3", "mtp", "dflash")
V2_RUNNER = "vllm.v1.worker.gpu.model_runner"
# Attention backends beside which the tree's rows have been attended to and compared.
BACKENDS = ("CPU_ATTN", "TRITON_ATTN")
# Types of a cache whose rows can be read as they are.
CACHES = ("auto", "float16", "bfloat16")


class Refused(ValueError):
    """Trees are configured where they cannot work; says why, and which setting helps."""

    def __init__(self, reason: str, remedy: str) -> None:
        """`remedy` completes the sentence "to start, ..."."""
        super().__init__(f"ddtree: {reason}; to start, {remedy}")


# The modules that a plug-in hooks by assignment, once they are imported.
ASSIGNED: set[str] = set()


@functools.cache
def is_hooked(module: str) -> bool:
    """Whether a module of the vLLM that runs is edited or assigned to; it is not imported."""
    if module in ASSIGNED:
        return True
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    if spec is None or spec.origin is None:
        return False
    return b"_ddtree_hook" in pathlib.Path(spec.origin).read_bytes()


def uses_v2(config: Any) -> bool:
    """Whether vLLM takes the V2 model runner; before 0.22.0 an environment variable alone says."""
    if hasattr(config, "use_v2_model_runner"):
        return bool(config.use_v2_model_runner)
    # vLLM is importable where its configuration is.
    from vllm import envs

    return bool(envs.VLLM_USE_V2_MODEL_RUNNER)


def drafts_static_tree(spec: Any) -> bool:
    """Whether vLLM itself drafts one fixed tree, as it could until 0.20.2."""
    paths = ast.literal_eval(getattr(spec, "speculative_token_tree", None) or "[]")
    return any(any(path) for path in paths)


def _has_windows(model: Any) -> bool:
    """Whether some layers look back only so far; of all of them, the cache configuration tells."""
    text = getattr(model, "hf_text_config", None)
    kinds = getattr(text, "layer_types", None)
    return bool(getattr(text, "sliding_window", None)) and "sliding_attention" in (kinds or ())


NO_TREES = 'remove "ddtree" from --additional-config'
WINDOWS = "the model's attention has sliding windows"

# Each asks one question of a `VllmConfig`: does it hold, why is that a problem, what helps.
Question = tuple[Callable[[Any], object], str, str]

CONFIG_QUESTIONS: tuple[Question, ...] = (
    (
        lambda config: config.speculative_config is None,
        "there is no drafter, so there is nothing to verify",
        "give --speculative-config",
    ),
    (
        lambda config: uses_v2(config) and not is_hooked(V2_RUNNER),
        "only the V1 model runner is hooked in this release",
        "set VLLM_USE_V2_MODEL_RUNNER=0",
    ),
    (
        lambda config: (
            uses_v2(config)
            and config.speculative_config.method in METHODS
            and config.speculative_config.method not in V2_METHODS
        ),
        "the V2 model runner drafts without a model here, and only the V1 runner's trees do that",
        "set VLLM_USE_V2_MODEL_RUNNER=0",
    ),
    (
        lambda config: getattr(config, "watermark_config", None),
        "a watermark is drawn along a chain",
        "remove the watermark's configuration",
    ),
    (
        lambda config: (
            not uses_v2(config) and getattr(config.scheduler_config, "async_scheduling", False)
        ),
        "asynchronous scheduling is not supported on the V1 model runner",
        "set --no-async-scheduling",
    ),
    (
        lambda config: getattr(config.cache_config, "cache_dtype", "auto") not in CACHES,
        "the cache is quantised",
        "set --kv-cache-dtype auto",
    ),
    (
        lambda config: getattr(config.cache_config, "sliding_window", None),
        WINDOWS,
        NO_TREES,
    ),
    (
        lambda config: _quantises_in_attention(config.compilation_config),
        "attention that is fused with quantisation writes quantised rows, and a tree's are not",
        'set "pass_config": {"fuse_attn_quant": false} in --compilation-config',
    ),
    (
        lambda config: getattr(config.cache_config, "kv_sharing_fast_prefill", False),
        "fast prefill leaves out rows in some layers",
        "remove --kv-sharing-fast-prefill",
    ),
    (
        lambda config: config.parallel_config.pipeline_parallel_size > 1,
        "pipeline parallelism hides the sampled rows from the other stages",
        "set --pipeline-parallel-size 1",
    ),
    (
        lambda config: (
            getattr(config.parallel_config, "decode_context_parallel_size", 1) > 1
            or getattr(config.parallel_config, "prefill_context_parallel_size", 1) > 1
        ),
        "context parallelism spreads a tree's keys over ranks",
        "set the context-parallel sizes to 1",
    ),
    (
        lambda config: getattr(config.parallel_config, "enable_dbo", False),
        "dual-batch overlap splits a batch's attention",
        "remove --enable-dbo",
    ),
    (
        lambda config: getattr(config.parallel_config, "enable_batch_sharded_sampling", False),
        "batch-sharded sampling spreads a step's requests over ranks",
        "remove --enable-batch-sharded-sampling",
    ),
    (
        lambda config: config.kv_transfer_config,
        "a KV connector may save keys before the accepted path is committed",
        "remove --kv-transfer-config",
    ),
)

MODEL_QUESTIONS: tuple[Question, ...] = (
    (
        lambda model: model.is_hybrid or model.is_attention_free,
        "the model keeps a recurrent state, which has no branches",
        NO_TREES,
    ),
    (lambda model: model.use_mla, "latent attention (MLA) is not supported", NO_TREES),
    (lambda model: model.uses_mrope, "multi-axis positions (M-RoPE) are not supported", NO_TREES),
    (lambda model: model.is_encoder_decoder, "encoder-decoder models are not supported", NO_TREES),
    (_has_windows, WINDOWS, NO_TREES),
)

# Asked on every device but a CPU.
DEVICE_QUESTIONS: tuple[Question, ...] = (
    (
        lambda config: _has_full_graphs(config.compilation_config),
        "a full CUDA graph replays attention without the tree",
        """set --compilation-config '{"cudagraph_mode": "PIECEWISE"}'""",
    ),
    (
        lambda config: _backend(config) not in (None, *BACKENDS),
        "trees were not tested beside this attention backend",
        "set --attention-backend TRITON_ATTN",
    ),
    (
        lambda config: config.speculative_config.method == "dflash" and target_has_no_backend(),
        "with DFlash, this release wants attention without a causal mask in the target's layers"
        " too, which TRITON_ATTN does not offer here, and trees run beside no other backend",
        "take another drafter (draft_model, ngram, eagle), or a newer vLLM",
    ),
)

SPECULATIVE_QUESTIONS: tuple[Question, ...] = (
    (
        drafts_static_tree,
        "vLLM's own token tree is drafted for all requests alike, and verified as a chain",
        'remove "speculative_token_tree"',
    ),
    (
        lambda spec: spec.method not in METHODS,
        "this drafter's output is no tree",
        f"take one of the methods {', '.join(METHODS)}",
    ),
    (
        lambda spec: (
            getattr(spec, "rejection_sample_method", "standard") not in ("standard", "strict")
        ),
        "this rejection method judges a chain",
        'remove "rejection_sample_method"',
    ),
    (
        lambda spec: getattr(spec, "draft_sample_method", "greedy") != "greedy",
        "a tree's drafts are not drawn at random",
        'set "draft_sample_method": "greedy"',
    ),
    (
        lambda spec: getattr(spec, "num_speculative_tokens_per_batch_size", None),
        "the number of drafted tokens changes with the batch",
        'remove "num_speculative_tokens_per_batch_size"',
    ),
    (
        lambda spec: getattr(spec, "enable_adaptive_verification", False),
        "adaptive verification cuts drafts off as if they were chains",
        'remove "enable_adaptive_verification"',
    ),
    (
        lambda spec: getattr(spec, "use_heterogeneous_vocab", False),
        "the drafter has a vocabulary of its own",
        'set "use_heterogeneous_vocab": false',
    ),
)


def check_config(settings: Settings, config: Any) -> None:
    """Judge a `VllmConfig` that vLLM has finished.

    Raises:
        Refused: with the first reason that is found.
    """
    _ask(CONFIG_QUESTIONS, config)
    _ask(SPECULATIVE_QUESTIONS, config.speculative_config)
    if config.model_config is not None:
        _ask(MODEL_QUESTIONS, config.model_config)
    depth = config.speculative_config.num_speculative_tokens
    if depth is not None and depth > settings.budget:
        raise Refused(
            f"a budget of {settings.budget} nodes does not hold the drafter's own {depth} tokens",
            f'set "budget" to {depth} or more, or "num_speculative_tokens" to fewer',
        )
    device = config.device_config.device_type
    if device == "cpu":
        return
    if not settings.allow_untested_device:
        raise Refused(
            f"trees were not tested on {device}",
            'set "allow_untested_device": true and compare the output with ddtree verify',
        )
    _ask(DEVICE_QUESTIONS, config)


LAYER_QUESTIONS: tuple[Question, ...] = (
    (
        lambda layer: layer.attn_backend.get_name() not in BACKENDS,
        "trees were not tested beside its attention backend",
        "set --attention-backend TRITON_ATTN",
    ),
    (
        lambda layer: not is_known(layer),
        "its cache cannot be written apart from attention",
        NO_TREES,
    ),
    (
        lambda layer: getattr(layer.impl, "sliding_window", None) not in (None, -1, (-1, -1)),
        "it has a sliding window",
        NO_TREES,
    ),
    (
        lambda layer: getattr(layer.impl, "alibi_slopes", None) is not None,
        "it has ALiBi position biases",
        NO_TREES,
    ),
    (
        lambda layer: getattr(layer.impl, "sinks", None) is not None,
        "it has attention sinks",
        NO_TREES,
    ),
    (
        lambda layer: getattr(layer.impl, "logits_soft_cap", None),
        "it has a soft cap of its scores",
        NO_TREES,
    ),
    (
        lambda layer: getattr(layer.impl, "attn_type", "decoder") != "decoder",
        "it is no decoder's self-attention",
        NO_TREES,
    ),
    (
        lambda layer: layer.impl.kv_cache_dtype not in CACHES,
        "its cache is quantised",
        "set --kv-cache-dtype auto",
    ),
)


def check_sampler(sampler: Any) -> None:
    """Judge the rejection sampler of a V2 `GPUModelRunner`.

    Raises:
        Refused: it is not vLLM's own.
    """
    if type(sampler).__name__ != "RejectionSampler":
        raise Refused("the model brings a rejection sampler of its own", NO_TREES)


def check_layer(name: str, layer: Any) -> None:
    """Judge an attention layer of the target.

    Raises:
        Refused: with the first reason that is found.
    """
    for holds, reason, remedy in LAYER_QUESTIONS:
        if holds(layer):
            raise Refused(f"attention layer {name}: {reason}", remedy)


def _quantises_in_attention(compilation: Any) -> bool:
    """Whether vLLM's compiler, which is mode 3, joins a layer's attention and what follows it."""
    passes = getattr(compilation, "pass_config", None)
    return getattr(compilation, "mode", 0) == 3 and bool(getattr(passes, "fuse_attn_quant", False))


def _has_full_graphs(compilation: Any) -> bool:
    mode = getattr(compilation, "cudagraph_mode", None)
    return mode is not None and bool(mode.has_full_cudagraphs())


def _backend(config: Any) -> str | None:
    """The attention backend that is asked for; None where vLLM chooses."""
    backend = getattr(getattr(config, "attention_config", None), "backend", None)
    return None if backend is None else str(getattr(backend, "name", backend))


def _ask(questions: tuple[Question, ...], subject: Any) -> None:
    for holds, reason, remedy in questions:
        if holds(subject):
            raise Refused(reason, remedy)
