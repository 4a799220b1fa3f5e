"""Look into a model runner and change it; every function here runs in vLLM's worker.

The functions take the worker first, as vLLM's `collective_rpc` calls them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from . import oracle, runner_v1, runner_v2, runners
from .watch import Watch

ATTRIBUTE = "_ddtree_watch"


def install(worker: Any) -> str:
    """Begin to watch the worker's runner; which one it is."""
    runner, watch = worker.model_runner, Watch()
    setattr(runner, ATTRIBUTE, watch)
    _adapter(runner).install(runner, watch)
    return runners.kind(runner)


def ask(worker: Any, **wanted: Any) -> None:
    """Set what the watch keeps."""
    watch = getattr(worker.model_runner, ATTRIBUTE)
    for name, value in wanted.items():
        setattr(watch, name, value)


def seen(worker: Any, name: str) -> Any:
    """One attribute of the watch; numbers that are on a device are read."""
    value = getattr(getattr(worker.model_runner, ATTRIBUTE), name)
    return int(value) if name in ("verifications", "accepted") else value


def counters(worker: Any) -> dict[str, Any] | None:
    """The counters of the runtime in this runner."""
    engine = getattr(worker.model_runner, "_ddtree", None)
    found: dict[str, Any] | None = None if engine is None else engine.counters.read()
    return found


def leave_out(worker: Any, parts: list[str]) -> None:
    """Switch off parts of the runtime."""
    engine = worker.model_runner._ddtree
    engine.settings = dataclasses.replace(engine.settings, without=tuple(parts))


def place(worker: Any) -> None:
    """Let an oracle draft, where it does not yet."""
    runner = worker.model_runner
    _adapter(runner).place(runner, oracle.Oracle(worker.vllm_config))


def tell(worker: Any, known: list[list[int]], nodes: int, seed: int) -> None:
    """Tell the oracle what is known."""
    runner = worker.model_runner
    _adapter(runner).tell(runner, known, nodes, seed)


def _adapter(runner: Any) -> Any:
    return {"v1": runner_v1, "v2": runner_v2}[runners.kind(runner)]
