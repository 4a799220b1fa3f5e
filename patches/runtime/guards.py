"""No step whose rows are trees is over before the walk has decided it: else nobody gets its output.

A plug-in may replace a hooked function by one that only sometimes calls it, or replace it after the
start. Whatever hook comes next notices, and at the latest the end of the step does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .active import ACTIVE
from .config import KEY
from .engine import Engine
from .refusals import NO_TREES, Refused
from .step import Step


class Unhooked(RuntimeError):
    """A step was not handled as its trees need it, because a hooked function was replaced."""

    def __init__(self, found: str) -> None:
        """`found` says what happened to the step."""
        super().__init__(
            f"ddtree: {found}; something replaces a function that ddtree hooks into, and the "
            f"output would be wrong: run without it (see VLLM_PLUGINS), or {NO_TREES}"
        )


def guard(engine: Engine, runner: Any) -> None:
    """Let no output of a runner's step out before its walk.

    It is put on the runner itself, which comes before whatever is put into its class.
    """

    def sample_tokens(*args: Any, **named: Any) -> Any:
        output = type(runner).sample_tokens(runner, *args, **named)
        require_walked(engine)
        return output

    runner.sample_tokens = sample_tokens
    # An engine that failed in this process may have left a step behind.
    ACTIVE.clear()


def refuse_unless_off(runner: Any) -> None:
    """Make sure that a runner without the runtime's state is one without trees.

    Raises:
        Refused: it is not.
    """
    config = getattr(runner, "vllm_config", None)
    given = getattr(config, "additional_config", None)
    if isinstance(given, Mapping) and KEY in given:
        raise Refused(
            "trees are configured, and the model runner was made without them",
            f"leave out what replaces its __init__ (see VLLM_PLUGINS), or {NO_TREES}",
        )


def require_walked(engine: Engine) -> None:
    """Make sure that the step in progress, if its rows are trees, has been walked.

    Raises:
        Unhooked: it has not.
    """
    step = engine.step
    if step is not None and step.trees and step.perm is None:
        raise Unhooked("a step's trees were sampled without their walk")


def require_begun(engine: Engine, requests: Iterable[str]) -> None:
    """Make sure that the trees that wait for these requests' step were put into it.

    Raises:
        Unhooked: they were not.
    """
    if any(request in engine.pending.rounds for request in requests):
        raise Unhooked("a step's trees were prepared without their mask")


def require_told(step: Step) -> None:
    """Make sure that the sampler has asked for the walk's tokens.

    Raises:
        Unhooked: it has decided by itself.
    """
    if not step.judged:
        raise Unhooked("a step's trees were walked, and the sampler decided without asking")


def decided() -> Step | None:
    """The step whose tokens are being sampled; None if no tree is in it.

    Raises:
        Unhooked: its walk is still to come.
    """
    if ACTIVE.unwalked is not None:
        raise Unhooked("a step's trees were handed to vLLM's own decision without their walk")
    return ACTIVE.decided
