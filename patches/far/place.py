"""From what a user names to an install elsewhere that can be changed."""

from __future__ import annotations

from collections.abc import Iterator

from ...analyzers.install.names import printable
from ...analyzers.remote.hints import there
from ...analyzers.transports.address import parse_address
from ...analyzers.transports.open import open_transport
from ...analyzers.transports.settings import Settings
from .remote import Far


def far_of(target: str, python: str | None, settings: Settings) -> Far:
    """The install that an address leads to.

    Args:
        target: an address, as `parse_address` takes it.
        python: the interpreter or environment there; None for the only one with vLLM.
        settings: how it is reached.

    Raises:
        UsageError: the address makes no sense.
    """
    address = parse_address(target)
    return Far(
        printable(target),
        lambda: open_transport(address, settings),
        python,
        tuple(there(address)),
        settings.timeout,
        tuple(_options(settings)),
        settings.say,
    )


def _options(settings: Settings) -> Iterator[str]:
    """The options that lead to the same place once more."""
    if settings.ssh_config is not None:
        yield from ("--ssh-config", str(settings.ssh_config))
    if settings.transport != Settings().transport:
        yield from ("--transport", settings.transport)
    if settings.sudo:
        yield "--sudo"
