"""What is decided where vLLM makes its configuration: in the first process, before anything loads.

A worker would find the same, minutes later and in the middle of other processes' errors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .attached import check_attached
from .config import SettingsError, settings_of
from .refusals import Refused, check_config


def create_engine_config(
    function: Callable[..., Any], arguments: Any, *args: Any, **named: Any
) -> Any:
    """Around making a `VllmConfig` of vLLM's `EngineArgs`: decide whether trees work with it.

    Raises:
        SettingsError: the settings are wrong.
        Refused: trees cannot work with this configuration.
    """
    try:
        settings = settings_of(getattr(arguments, "additional_config", None))
        config = function(arguments, *args, **named)
        if settings is not None:
            check_config(settings, config)
            # A plug-in that replaces something has imported it here too.
            check_attached()
    except (SettingsError, Refused):
        _say_it_once()
        raise
    return config


def _say_it_once() -> None:
    """If nobody catches the refusal, print its message alone: it needs no look at vLLM's code."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, SettingsError | Refused):
            sys.stderr.write(f"{error}\n")
        else:
            before(kind, error, trace)

    sys.excepthook = hook
