"""The hooks of the V2 model runner (vllm/v1/worker/gpu/model_runner.py).

Order within a step: slots are computed (trees found, positions set to depths), the target runs
(attention applies the mask), the rejection sampler is called (walk, commit, rows reordered), the
speculator proposes (it sees an ordinary chain; its candidates become the next trees). Nothing here
reads what is on the device, so that asynchronous scheduling stays what it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..accept import accept, path_tokens, write_drafts
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
from ..refusals import check_config, check_sampler
from . import processors
from .chains import limited, shorten
from .drafting import drafts_of
from .draws import targets
from .speculators import check_speculator

Function = Callable[..., Any]

# What has to be hooked where trees are drafted.
NEEDED = (
    "config.num_speculative_tokens",
    "v2.initialize_kv_cache",
    "v2.add_requests",
    "v2.prepare_attn",
    "v2.sample",
    "v2.rejection_sample",
    "v2.sample_draft",
)


def init(function: Function, runner: Any, *args: Any, **named: Any) -> None:
    """After the runner is made: keep the runtime's state on it, and stand around its speculator.

    Raises:
        SettingsError: the settings are wrong.
        Refused: trees cannot work here.
    """
    function(runner, *args, **named)
    settings = settings_for(runner)
    if settings is None:
        return
    check_config(settings, runner.vllm_config)
    depth = runner.vllm_config.speculative_config.num_speculative_tokens
    # Every request is judged when it arrives; its parameters are not kept.
    engine = Engine(settings, depth, Counters(runner.device), lambda _: None)
    setattr(runner, ATTRIBUTE, engine)
    speculator = runner.speculator
    check_attached(NEEDED, runner, speculator)
    guard(engine, runner)
    check_speculator(speculator)
    speculator.propose = functools.partial(propose, engine, speculator.propose)


def initialize_kv_cache(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """After the caches are there: look at the target's layers, and give the sampler its width.

    Raises:
        Refused: a layer's attention, or the model's sampler, cannot be a tree's.
    """
    result = function(runner, *args, **named)
    engine = engine_of(runner)
    if engine is None:
        refuse_unless_off(runner)
        return result
    check_attached(NEEDED, runner, runner.speculator, runner.rejection_sampler)
    engine.take_layers(
        runner.kv_cache_config.kv_cache_groups,
        runner.vllm_config.compilation_config.static_forward_context,
        set(runner.speculator.draft_attn_layer_names),
    )
    sampler = runner.rejection_sampler
    check_sampler(sampler)
    engine.announce(runner.vllm_config, "V2")
    setattr(sampler, ATTRIBUTE, engine)
    processors.watch(sampler.sampler, engine.changed_slots)
    shorten(engine, runner.draft_tokens_handler)
    # A request that takes no tree may be verified over the whole width: its chain, then padding.
    sampler.num_speculative_steps = engine.settings.budget
    return result


def add_requests(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """Around adding requests: forget who left, and judge who comes."""
    engine = engine_of(runner)
    if engine is None:
        return function(runner, *args, **named)
    return _add_requests(engine, function, runner, *args, **named)


def _add_requests(engine: Engine, function: Function, runner: Any, scheduler_output: Any) -> Any:
    new = scheduler_output.scheduled_new_reqs
    preempted = scheduler_output.preempted_req_ids or ()
    engine.forget({*scheduler_output.finished_req_ids, *preempted})
    engine.forget({request.req_id for request in new})
    for request in new:
        engine.judge(request.req_id, request.sampling_params)
    result = function(runner, scheduler_output)
    slots = runner.req_states.req_id_to_index
    processors.judge(engine, [request.req_id for request in new], slots)
    return result


def prepare_attn(function: Function, runner: Any, *args: Any, **named: Any) -> Any:
    """After the slots are computed: find the trees and set their rows' positions to depths."""
    result = function(runner, *args, **named)
    engine = engine_of(runner)
    if engine is not None:
        _begin(engine, result, *args, **named)
    return result


def _begin(engine: Engine, result: Any, input_batch: Any) -> None:
    logits = input_batch.cu_num_logits_np
    batch = Batch(
        requests=input_batch.req_ids,
        drafts=(logits[1:] - logits[:-1] - 1).tolist(),
        scheduled=input_batch.num_scheduled_tokens.tolist(),
        input_ids=input_batch.input_ids,
        positions=input_batch.positions,
    )
    step = begin(engine, batch)
    if step is not None:
        step.slots = result[1]


def sample(function: Function, sampler: Any, *args: Any, **named: Any) -> Any:
    """Before the rejection sampler: walk, commit, and put the accepted path first."""
    engine = engine_of(sampler)
    if engine is None:
        return function(sampler, *args, **named)
    return _sample(engine, function, sampler, *args, **named)


def _sample(
    engine: Engine,
    function: Function,
    sampler: Any,
    logits: torch.Tensor,
    input_batch: Any,
    *rest: Any,
    **named: Any,
) -> Any:
    step = engine.step
    if step is not None and step.slots is not None:
        ACTIVE.clear()
        tokens = targets(sampler.sampler, logits, input_batch)
        logits = accept(engine, step, logits, tokens, step.slots.__getitem__)
        write_drafts(step, logits.shape[-1])
        ACTIVE.decided = step
    else:
        require_begun(engine, input_batch.req_ids)
    ACTIVE.depth = engine.depth
    try:
        output = function(sampler, logits, input_batch, *rest, **named)
    finally:
        ACTIVE.decided = ACTIVE.depth = None
    if step is not None:
        require_told(step)
    return output


def rejection_sample(function: Function, *args: Any, **named: Any) -> Any:
    """After accept-or-reject: what the walk decided, also above temperature 0; no chain's padding.

    The sampler may hand its requests over in several parts, one after another.
    """
    # Before anything: whoever replaced the sampler has told nothing of the step.
    step = decided()
    result = function(*args, **named)
    if ACTIVE.depth is None:
        return result
    sampled, num_sampled = result
    num_sampled = limited(num_sampled, ACTIVE.depth)
    if step is None or step.is_walked is None:
        return sampled, num_sampled
    part = slice(step.judged, step.judged + len(num_sampled))
    step.judged = part.stop
    tokens, count = path_tokens(step)
    walked = step.is_walked[part]
    missing = sampled.shape[1] - tokens.shape[1]
    tokens = torch.nn.functional.pad(tokens[part], (0, missing), value=-1).to(sampled.dtype)
    return (
        torch.where(walked[:, None], tokens, sampled),
        torch.where(walked, count[part].to(num_sampled.dtype), num_sampled),
    )


def propose(
    engine: Engine,
    function: Function,
    input_batch: Any,
    attn_metadata: Any,
    slot_mappings: Any,
    last_hidden_states: torch.Tensor,
    aux_hidden_states: list[torch.Tensor] | None,
    *rest: Any,
    **named: Any,
) -> torch.Tensor:
    """Around drafting: the speculator sees the accepted path as a chain; its drafts become trees.

    The parameters have vLLM's own names: a dummy run, which comes before a GPU serves, gives all of
    them by name.

    Args:
        engine: the runner's state.
        function: the speculator's own `propose`.
        input_batch: vLLM's `InputBatch`.
        attn_metadata: handed on.
        slot_mappings: handed on.
        last_hidden_states: [T, hidden], in the rows' order in the target's forward.
        aux_hidden_states: the same of some layers.
        rest: handed on.
        named: handed on; the width of the verification is replaced by the drafter's depth, except
            for 0, by which a step says that nobody can use its drafts.

    Returns:
        [R, budget] tokens to verify, or the drafter's own in a dummy run.
    """
    before = (input_batch, attn_metadata, slot_mappings)
    if named.get("dummy_run"):
        given = (*before, last_hidden_states, aux_hidden_states)
        drafts: torch.Tensor = function(*given, *rest, **named)
        return drafts
    require_walked(engine)
    require_begun(engine, input_batch.req_ids)
    hidden, *aux = _as_chain(engine, [last_hidden_states, *(aux_hidden_states or [])])
    ACTIVE.clear()
    engine.step = None
    asked = named.get("num_speculative_tokens")
    if asked:
        named["num_speculative_tokens"] = engine.depth
    capture = ACTIVE.capture = capture_for(engine)
    try:
        chain = function(*before, hidden, aux or aux_hidden_states, *rest, **named)
    finally:
        ACTIVE.capture = None
    engine.counters.log_now_and_then()
    if asked == 0:
        return torch.nn.functional.pad(chain, (0, engine.settings.budget - chain.shape[1]))
    return drafts_of(engine, chain, capture, input_batch.req_ids)


def sample_draft(function: Function, speculator: Any, *args: Any, **named: Any) -> Any:
    """While drafting: keep the best candidates of the logits that a token is taken from."""
    capture = ACTIVE.capture
    if capture is None:
        return function(speculator, *args, **named)
    return _sample_draft(capture, speculator, *args, **named)


def _sample_draft(
    capture: Capture, speculator: Any, hidden_states: torch.Tensor, *rest: Any, **named: Any
) -> Any:
    if hasattr(speculator, "compute_draft_logits"):
        # Position, request, temperature, seed, step and cache come first (since 0.32.0).
        module = named.get("spec_step_idx", rest[6] if len(rest) > 6 else 0)
        logits = speculator.compute_draft_logits(hidden_states, module)
    else:
        logits = speculator.model.compute_logits(hidden_states)
    capture.take(logits)
    return logits.argmax(dim=-1)


def _as_chain(engine: Engine, rows: list[torch.Tensor]) -> list[torch.Tensor]:
    """The target's rows with the accepted path first; unchanged if nothing moves."""
    step = engine.step
    if step is None or step.token_order is None:
        return rows
    order = step.token_order
    # Rows of padding stay where they are.
    padding = torch.arange(len(order), len(rows[0]), device=order.device)
    order = torch.cat([order, padding.to(order.dtype)])
    return [part.index_select(0, order) for part in rows]
