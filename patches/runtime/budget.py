"""The scheduler reserves room for the tree's nodes, while the drafter keeps its own depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .config import settings_of


def num_speculative_tokens(getter: Callable[[Any], int], config: Any) -> int:
    """The verification width of a `VllmConfig`: the tree's budget where trees are configured.

    Everything that reserves rows or slots reads this property; the drafters read the depth from
    the speculative configuration. vLLM reads it before the configuration is finished, so that
    whether trees can work with it is judged elsewhere.

    Raises:
        SettingsError: the settings are wrong.
    """
    depth = getter(config)
    settings = settings_of(config.additional_config)
    if settings is None or config.speculative_config is None:
        return depth
    return max(depth, settings.budget)
