"""From what a user names to an install elsewhere that can be changed."""

from __future__ import annotations

from ...analyzers.transports.address import Address, SshAddress, parse_address
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
    shell = _shell(address)
    return Far(
        target,
        lambda: open_transport(address, settings),
        python,
        (*shell, "sudo", "-n") if settings.sudo else shell,
        settings.timeout,
    )


def _shell(address: Address) -> tuple[str, ...]:
    """The words before a command that a person runs there."""
    if not isinstance(address, SshAddress):
        from ...analyzers.transports.container import prefix

        return prefix(address)
    port = ("-p", str(address.port)) if address.port else ()
    return ("ssh", *port, f"{address.user}@{address.host}" if address.user else address.host)
