"""The scheduler reserves room for the tree's nodes, while the drafter keeps its own depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .config import settings_of
from .refusals import check_config


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
    check_config(settings, config)
    return settings.budget
