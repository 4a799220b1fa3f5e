"""From an address to a transport that is open for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from . import Transport
from .address import Address, SshAddress
from .container import ContainerTransport
from .deadline import Deadline
from .local import LocalTransport
from .settings import Settings
from .sudo import SudoTransport
from .timed import TimedTransport

__all__ = ["Settings", "open_transport"]


@contextlib.contextmanager
def open_transport(address: Address, settings: Settings) -> Iterator[Transport]:
    """Reach a target, and stay connected for as long as the block runs.

    Raises:
        UnreachableError: it cannot be reached, is not trusted, or lets nobody in.
    """
    deadline = Deadline(settings.timeout, str(address))
    with contextlib.ExitStack() as stack:
        yield TimedTransport(_opened(address, settings, deadline, stack), deadline)


def _opened(
    address: Address, settings: Settings, deadline: Deadline, stack: contextlib.ExitStack
) -> Transport:
    if not isinstance(address, SshAddress):
        local = LocalTransport()
        return ContainerTransport(address, SudoTransport(local) if settings.sudo else local)
    if settings.transport == "openssh":
        from .openssh import OpensshTransport

        transport: Transport = stack.enter_context(OpensshTransport(address, settings, deadline))
    else:
        # It takes a fifth of a second to import.
        from .ssh.transport import SshTransport

        transport = stack.enter_context(SshTransport(address, settings, deadline))
    return SudoTransport(transport) if settings.sudo else transport
