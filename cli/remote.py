"""From the options of a command to an install on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .options import SshTransport
from .output import complain

if TYPE_CHECKING:
    from ..analyzers.transports.settings import Settings
    from ..patches.far.remote import Far


def settings_of(
    transport: SshTransport,
    accept_new: bool,
    sudo: bool,
    timeout: float | None,
    ssh_config: Path | None,
) -> Settings:
    """How other machines are reached."""
    from ..analyzers.transports.settings import Settings

    return Settings(transport.value, accept_new, sudo, timeout, ssh_config, _say)


def far_of(
    target: str | None,
    python: Path | None,
    transport: SshTransport,
    accept_new: bool,
    sudo: bool,
    timeout: float | None,
    ssh_config: Path | None,
) -> Far | None:
    """The install that an address leads to; None if the target is on this machine."""
    from ..analyzers.transports.address import is_address

    if target is None or not is_address(target):
        return None
    from ..patches.far.place import far_of as place

    settings = settings_of(transport, accept_new, sudo, timeout, ssh_config)
    return place(target, None if python is None else str(python), settings)


def _say(sentence: str) -> None:
    from .render.text import clean

    complain(f"{clean(sentence)}\n")
