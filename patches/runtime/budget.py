"""The scheduler reserves room for the tree's nodes, while the drafter keeps its own depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .config import settings_of
from .refusals import NO_TREES, Refused, check_config

# Names of hooks in vLLM's files that this runtime has no handler for.
UNKNOWN: list[str] = []


def misfit(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """In the place of a hook that this runtime does not know: nothing."""
    return function(*args, **named)


def made(function: Callable[..., Any], config: Any, *args: Any, **named: Any) -> Any:
    """After a `VllmConfig` is made, in the first process: the settings have to make sense.

    Raises:
        SettingsError: they do not.
        Refused: some hook does nothing.
    """
    result = function(config, *args, **named)
    if settings_of(getattr(config, "additional_config", None)) is not None:
        _refuse_misfits()
    return result


def num_speculative_tokens(getter: Callable[[Any], int], config: Any) -> int:
    """The verification width of a `VllmConfig`: the tree's budget where trees are configured.

    Everything that reserves rows or slots reads this property; the drafters read the depth from
    the speculative configuration.

    Raises:
        SettingsError: the settings are wrong.
        Refused: trees cannot work with this configuration.
    """
    depth = getter(config)
    settings = settings_of(config.additional_config)
    if settings is None:
        return depth
    _refuse_misfits()
    check_config(settings, config)
    return settings.budget


def _refuse_misfits() -> None:
    if UNKNOWN:
        raise Refused(
            f"the patch has hooks that its runtime does not know: {', '.join(UNKNOWN)}",
            f"run ddtree patch --revert and ddtree patch --apply, or {NO_TREES}",
        )
