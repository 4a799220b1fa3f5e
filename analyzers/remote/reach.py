"""From an address to the install there."""

from __future__ import annotations

from ..errors import TargetError
from ..install.names import printable
from ..progress import Say, silent
from ..targets.source import Target
from ..transports.address import parse_address
from ..transports.open import open_transport
from ..transports.settings import Settings
from . import hints
from .ask import RefusedError
from .exchange import PATIENCE_SECONDS
from .target import remote_target


def reached_target(
    address: str,
    settings: Settings,
    *,
    python: str | None = None,
    record: bool = False,
    progress: Say = silent,
) -> Target:
    """Look at the install on another machine or in a container; see `remote_target`.

    Raises:
        UsageError: the address makes no sense.
        UnreachableError: nothing can be run there.
        TargetError: there is no such install.
    """
    place = parse_address(address)
    shown = printable(address)
    patience = PATIENCE_SECONDS if settings.timeout is None else settings.timeout
    try:
        return remote_target(
            shown,
            lambda: open_transport(place, settings),
            python=python,
            record=record,
            patience=patience,
            progress=progress,
        )
    except RefusedError as error:
        hint = hints.local(error.hint, shown, python, (), hints.there(place))
        raise TargetError(error.found, expected=error.expected, hint=hint) from None
