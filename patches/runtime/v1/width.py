"""Two widths: what the scheduler reserves for a request is the tree's, the drafter keeps its depth.

Since 0.24.0 the scheduler reads its width where `budget` answers, and each step's drafts may have
a width of their own. Before that, the scheduler and the runner take the drafter's depth for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from ..config import settings_for
from ..refusals import check_config

# Of `SchedulerOutput`, since 0.24.0.
FIELD = "num_spec_tokens_to_schedule"

Drafts = torch.Tensor | list[list[int]]


def scheduler_init(function: Callable[..., None], scheduler: Any, *args: Any, **named: Any) -> None:
    """After the scheduler is made: let it reserve rows and slots for the budget.

    Raises:
        SettingsError: the settings are wrong.
        Refused: trees cannot work with this configuration, such as with the V2 model runner.
    """
    function(scheduler, *args, **named)
    settings = settings_for(scheduler)
    if settings is None:
        return
    check_config(settings, scheduler.vllm_config)
    more = settings.budget - scheduler.num_spec_tokens
    scheduler.num_spec_tokens += more
    # 0 where the drafter writes no keys ahead.
    if scheduler.num_lookahead_tokens:
        scheduler.num_lookahead_tokens += more


def widen(runner: Any, budget: int) -> None:
    """Give a `GPUModelRunner` that was just made room for the budget."""
    runner.num_spec_tokens = runner.prev_num_spec_tokens = budget
    runner.uniform_decode_query_len = 1 + budget
    ids = runner.draft_token_ids_cpu
    if ids is not None:
        pinned = ids.device.type == "cpu" and ids.is_pinned()
        shape = (len(ids), budget)
        runner.draft_token_ids_cpu = torch.empty(shape, dtype=ids.dtype, pin_memory=pinned)


def for_drafter(scheduler_output: Any, depth: int) -> Any:
    """The step as the drafter sees it, where a step says how many tokens to draft."""
    if not hasattr(scheduler_output, FIELD):
        return scheduler_output
    return dataclasses.replace(scheduler_output, **{FIELD: depth})


def for_scheduler(scheduler_output: Any, drafts: Drafts, budget: int) -> Drafts:
    """The drafts in a form that the runner can hand on.

    Where a step has no width of its own, and on a CPU in 0.24.0 too, a tensor of drafts has to be
    as wide as the runner's buffer. A drafter's own chain, of which no tree was made, goes as lists.
    """
    if isinstance(drafts, list) or drafts.shape[1] == budget:
        return drafts
    if hasattr(scheduler_output, FIELD) and not drafts.is_cpu:
        return drafts
    chains: list[list[int]] = drafts.tolist()
    return chains
