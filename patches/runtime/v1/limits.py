"""Requests near the longest sequence: they draft nothing more, and the others keep their trees.

vLLM's V1 runner asks whether the longest sequence of a batch and the drafts of one more step fit,
counted in rows of a tree here, and drops the drafts of all requests where they do not. A drafter
that brings its own model has to be kept within its longest sequence; those that look into the text
keep to it by themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..engine import Engine

# Methods of drafters without a model.
IN_TEXT = ("ngram", "custom_class")


def lift(engine: Engine, runner: Any) -> None:
    """Take over from vLLM's question about the whole batch, which always fits from here on."""
    longest = runner.effective_drafter_max_model_len
    if longest < sys.maxsize:
        engine.longest = min(longest, runner.max_model_len)
    runner.effective_drafter_max_model_len = sys.maxsize


@dataclass(frozen=True, slots=True)
class Line:
    """A request that may be near.

    Attributes:
        number: its line in the batch.
        rows: its token rows in the step.
        before: its tokens up to and including the root.
        drafts: drafted rows after it.
    """

    number: int
    rows: slice
    before: int
    drafts: int


def near(engine: Engine, runner: Any, scheduled: Any, sampled: Any, common: Any) -> list[int]:
    """Lines of the requests that are not drafted for, once the drafter is kept within bounds.

    Args:
        engine: the runner's state.
        runner: vLLM's `GPUModelRunner`.
        scheduled: vLLM's `SchedulerOutput` of the step that was sampled.
        sampled: its tokens, [R, N + 1] and -1 where there is none, or a list per request.
        common: vLLM's `CommonAttentionMetadata` for the drafter; written here.
    """
    if runner.speculative_config.method in IN_TEXT:
        return []
    lines = _lines(engine, runner, scheduled)
    if not lines:
        return []
    accepted = _accepted(sampled)
    found = []
    # The token that was sampled last is drafted from, at the place after these.
    most = engine.longest - engine.depth - 1
    for line in lines:
        ends = line.before + min(accepted[line.number], line.drafts) > most
        if ends:
            found.append(line.number)
        # What was rejected is past the end of all that the drafter attends to.
        runner.positions[line.rows].clamp_(max=(most if ends else engine.longest) - 1)
    # The null block is what lies after the last one.
    table = common.block_table_tensor
    common.block_table_tensor = torch.nn.functional.pad(table, (0, engine.depth + 2))
    return found


def _lines(engine: Engine, runner: Any, scheduled: Any) -> list[Line]:
    """The requests that were given so many rows that the next drafts may not fit."""
    batch, rows = runner.input_batch, scheduled.num_scheduled_tokens
    computed: list[int] = batch.num_computed_tokens_cpu[: batch.num_reqs].tolist()
    most = engine.longest - engine.depth - 1
    if max(computed) + max(rows.values()) <= most:
        return []
    found, first = [], 0
    for number, (request, before) in enumerate(zip(batch.req_ids, computed, strict=True)):
        last = first + rows[request]
        drafts = len(scheduled.scheduled_spec_decode_tokens.get(request, ()))
        if before + rows[request] > most:
            at = before + rows[request] - drafts
            found.append(Line(number, slice(first, last), at, drafts))
        first = last
    return found


def _accepted(sampled: torch.Tensor | Sequence[Sequence[int]]) -> list[int]:
    """How many drafts of each request were accepted; waits for the device."""
    if isinstance(sampled, torch.Tensor):
        counts: list[int] = (sampled >= 0).sum(1).tolist()
    else:
        counts = [len(tokens) for tokens in sampled]
    return [max(0, count - 1) for count in counts]
