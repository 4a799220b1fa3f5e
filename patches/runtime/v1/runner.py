"""The hooks of the V1 model runner (vllm/v1/worker/gpu_model_runner.py).

Order within a step: inputs are prepared (trees found, positions set to depths), the target runs
(attention applies the mask), tokens are sampled (walk, commit, rows reordered), drafts are made
(the drafter sees an ordinary chain; its candidates become the next trees).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..accept import accept, path_drafts, path_tokens, real_drafts
from ..active import ACTIVE
from ..attached import check_attached
from ..batch import Batch
from ..capture import Capture
from ..config import settings_for
from ..counters import Counters
from ..drafting import capture_for
from ..engine import ATTRIBUTE, Engine, engine_of
from ..guards import (
    decided,
    guard,
    refuse_unless_off,
    require_begun,
    require_told,
    require_walked,
)
from ..prepare import begin
from ..refusals import check_config
from . import limits, width
from .drafting import draft
from .draws import targets

Function = Callable[..., Any]

# What has to be hooked where trees are drafted.
NEEDED = (
    "config.num_speculative_tokens",
    "v1.initialize_kv_cache",
    "v1.prepare_inputs",
    "v1.sample",
    "v1.propose",
    "v1.rejection_sample",
    "v1.expand_batch_to_tokens",
    "v1.draft_logits",
)


def init(function: Function, runner: Any, *args: Any, **named: Any) -> None:
    """After the runner is made: give it room for the budget, and the runtime's state.

    Raises:
        SettingsError: the settings are wrong.
        Refused: trees cannot work here.
    """
    function(runner, *args, **named)
    settings = settings_for(runner)
    if settings is None:
        return
    check_config(settings, runner.vllm_config)
    engine = Engine(
        settings,
        runner.num_spec_tokens,
        Counters(runner.device),
        lambda request: runner.requests[request].sampling_params,
    )
    setattr(runner, ATTRIBUTE, engine)
    width.widen(runner, settings.budget)
    check_attached(NEEDED, runner)
    guard(engine, runner)


def initialize_kv_cache(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """After the caches are there: look at the target's layers.

    Raises:
        Refused: a layer's attention cannot be a tree's.
    """
    result = function(runner, *args, **named)
    engine = engine_of(runner)
    if engine is None:
        refuse_unless_off(runner)
        return result
    drafter = getattr(runner, "drafter", None)
    check_attached(NEEDED, runner, drafter)
    limits.lift(engine, runner)
    engine.take_layers(
        runner.kv_cache_config.kv_cache_groups,
        runner.compilation_config.static_forward_context,
        set(getattr(drafter, "_draft_attn_layer_names", None) or ()),
    )
    engine.announce(runner.vllm_config, "V1")
    return result


def prepare_inputs(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """After the inputs are prepared: find the trees and set their rows' positions to depths."""
    result = function(runner, *args, **named)
    engine = engine_of(runner)
    if engine is not None:
        _begin(engine, result, runner, *args, **named)
    return result


def _begin(
    engine: Engine, result: Any, runner: Any, scheduler_output: Any, num_scheduled_tokens: Any
) -> None:
    engine.forget(scheduler_output.finished_req_ids)
    # Of those that finished in a step without any tokens, nobody tells.
    engine.keep_only(runner.requests)
    metadata, scheduled = result[1], num_scheduled_tokens.tolist()
    drafts = [0] * len(scheduled) if metadata is None else list(metadata.num_draft_tokens)
    requests = runner.input_batch.req_ids[: len(scheduled)]
    begin(engine, Batch(requests, drafts, scheduled, runner.input_ids.gpu, runner.positions))


def sample(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """Before sampling: walk, commit, and put the accepted path first."""
    engine = engine_of(runner)
    if engine is None:
        return function(runner, *args, **named)
    return _sample(engine, function, runner, *args, **named)


def _sample(
    engine: Engine, function: Function, runner: Any, logits: Any, spec_decode_metadata: Any
) -> Any:
    metadata, step = spec_decode_metadata, engine.step
    ACTIVE.clear()
    if step is None or logits is None or metadata is None:
        require_walked(engine)
        require_begun(engine, runner.input_batch.req_ids)
        engine.step = None
        # A batch without a draft has nothing to reject; the CPU's rejection sampler (0.32.0)
        # raises on it when a request has a top_k.
        drafted = metadata is not None and any(metadata.num_draft_tokens)
        return function(runner, logits, metadata if drafted else None)
    batch = runner.input_batch
    tokens = targets(logits, step.drafts, batch.sampling_metadata)
    logits = accept(
        engine, step, logits, tokens, lambda group: batch.block_table[group].slot_mapping.gpu
    )
    drafts = path_drafts(step, logits.shape[-1])[real_drafts(step)]
    metadata.draft_token_ids = drafts.to(metadata.draft_token_ids.dtype)
    ACTIVE.decided = step
    try:
        output = function(runner, logits, metadata)
    finally:
        ACTIVE.decided = None
    require_told(step)
    return output


def rejection_sample(function: Function, *args: Any, **named: Any) -> Any:
    """In the place of the sampler's accept-or-reject: the walk's draws are the tokens.

    Above temperature 0 that is the law of the target, and greedy requests of a batch that samples
    somewhere are decided by the walk too.
    """
    step = decided()
    if step is None or step.is_walked is None:
        return function(*args, **named)
    step.judged = len(step.drafts)
    tokens, _ = path_tokens(step)
    # Where the walk has decided every request, vLLM's own decision would be thrown away.
    if len(step.walked) == len(step.drafts):
        return tokens
    output = function(*args, **named)
    width = output.shape[1]
    output.copy_(torch.where(step.is_walked[:, None], tokens[:, :width].to(output.dtype), output))
    return output


def expand_batch_to_tokens(function: Function, *args: Any, **named: Any) -> Any:
    """While a step of drafts is sampled: repeat a request's parameter for each of its drafts.

    vLLM's own form returns uninitialised memory for floating-point parameters on a CPU (0.32.0),
    which raises, or changes greedy requests, as soon as one request of the batch samples.
    """
    return (function if ACTIVE.decided is None else _expand)(*args, **named)


def _expand(
    x: torch.Tensor,
    cu_num_tokens: torch.Tensor,
    num_tokens: int,
    replace_from: int = 0,
    replace_to: int = 0,
) -> torch.Tensor:
    """What vLLM's function of that name returns.

    Args:
        x: [R], one value per request.
        cu_num_tokens: [R], drafts up to and including each request.
        num_tokens: drafts in all.
        replace_from: a value that is replaced.
        replace_to: by this one.
    """
    counts = cu_num_tokens.diff(prepend=cu_num_tokens.new_zeros(1))
    values = torch.where(x == replace_from, torch.full_like(x, replace_to), x)
    return values.repeat_interleave(counts, output_size=num_tokens)


def propose(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """Around drafting: the drafter sees the accepted path as a chain; its drafts become trees."""
    engine = engine_of(runner)
    if engine is None:
        return function(runner, *args, **named)
    return _propose(engine, function, runner, *args, **named)


def _propose(
    engine: Engine,
    function: Function,
    runner: Any,
    scheduler_output: Any,
    sampled_token_ids: Any,
    sampling_metadata: Any,
    hidden_states: torch.Tensor,
    sample_hidden_states: torch.Tensor,
    aux_hidden_states: list[torch.Tensor] | None,
    *rest: Any,
    **named: Any,
) -> Any:
    require_walked(engine)
    require_begun(engine, runner.input_batch.req_ids)
    hidden = _as_chain(engine, hidden_states, sample_hidden_states, aux_hidden_states)
    ACTIVE.clear()
    engine.step = None
    common = named.get("common_attn_metadata", rest[1] if len(rest) > 1 else None)
    ended = limits.near(engine, runner, scheduler_output, sampled_token_ids, common)
    output = width.for_drafter(scheduler_output, engine.depth)
    capture = ACTIVE.capture = capture_for(engine)
    try:
        given = (output, sampled_token_ids, sampling_metadata, *hidden)
        drafts = function(runner, *given, *rest, **named)
    finally:
        ACTIVE.capture = None
    engine.counters.log_now_and_then()
    drafts = draft(engine, runner, drafts, capture, ended)
    return width.for_scheduler(scheduler_output, drafts, engine.settings.budget)


def draft_logits(function: Function, drafter: Any, *args: Any, **named: Any) -> Any:
    """While drafting: keep the best candidates of the logits that a token is taken from."""
    capture = ACTIVE.capture
    if capture is None:
        return function(drafter, *args, **named)
    return _greedy_sample(capture, drafter, *args, **named)


def _greedy_sample(capture: Capture, drafter: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    logits = drafter.model.compute_logits(hidden_states)
    capture.take(logits)
    tokens: torch.Tensor = logits.max(-1).indices
    return tokens


def _as_chain(
    engine: Engine,
    hidden: torch.Tensor,
    sampled: torch.Tensor,
    aux: list[torch.Tensor] | None,
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor] | None]:
    """The target's hidden rows with the accepted path first; unchanged if nothing moves."""
    step = engine.step
    if step is None or step.token_order is None or step.logits_order is None:
        return hidden, sampled, aux
    order = step.token_order
    moved = None if aux is None else [rows[: len(order)].index_select(0, order) for rows in aux]
    return (
        hidden[: len(order)].index_select(0, order),
        sampled.index_select(0, step.logits_order),
        moved,
    )
