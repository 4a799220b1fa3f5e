"""A change of vLLM for one case: asynchronous scheduling, which its CPU platform switches off."""

from __future__ import annotations

from typing import Any

from vllm.platforms.cpu import CpuPlatform
from vllm.v1.core.sched import async_scheduler

_STOCK = CpuPlatform.check_and_update_config
_SCHEDULE = async_scheduler.AsyncScheduler.schedule

# Steps that were scheduled while the one before them had not come back.
AHEAD: list[int] = []


def make() -> None:
    """Let the platform's own checks run, and switch asynchronous scheduling on after them."""

    def checked(config: Any) -> None:
        _STOCK(config)
        config.scheduler_config.async_scheduling = True

    def schedule(scheduler: Any, *args: Any, **named: Any) -> Any:
        AHEAD.append(sum(one.num_output_placeholders for one in scheduler.running))
        return _SCHEDULE(scheduler, *args, **named)

    AHEAD.clear()
    CpuPlatform.check_and_update_config = staticmethod(checked)
    async_scheduler.AsyncScheduler.schedule = schedule


def undo() -> None:
    """Give vLLM its own functions back.

    Raises:
        RuntimeError: no step was scheduled ahead, so nothing was asynchronous.
    """
    CpuPlatform.check_and_update_config = _STOCK
    async_scheduler.AsyncScheduler.schedule = _SCHEDULE
    if not any(AHEAD):
        raise RuntimeError("expected steps that were scheduled ahead, found none")
