"""Custom logits processors of the V2 runner's sampler (since 0.31.0).

They read the rows before a row as its prefix, and what they make of a request's logits is decided
in vLLM's own sampler. So a request that one of them changes is verified as a chain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ..engine import Engine

REASON = "logits processor"
# What begins the modules of vLLM's own processors, whose settings `eligibility` knows.
OWN = "vllm."


def watch(sampler: Any, changed: set[int]) -> None:
    """Note in `changed` the slot of every request that a custom processor of the sampler takes."""
    for processor in getattr(sampler, "logits_processors", ()):
        if not type(processor).__module__.startswith(OWN):
            processor.add_request = functools.partial(_add, changed, processor.add_request)


def _add(changed: set[int], function: Callable[[int, Any], bool], slot: int, sampling: Any) -> bool:
    modifies = function(slot, sampling)
    if modifies:
        changed.add(slot)
    return modifies


def judge(engine: Engine, new: Iterable[str], slots: dict[str, int]) -> None:
    """Make chains of the requests that came in this step and that a custom processor changes.

    Args:
        engine: the runner's state, which has judged the requests by their parameters.
        new: their names.
        slots: every request's slot by name.
    """
    for request in new:
        if slots[request] in engine.changed_slots:
            engine.refuse(request, REASON)
    engine.changed_slots.clear()
