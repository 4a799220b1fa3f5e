"""Run commands on another machine: one connection, as many commands as are needed."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from types import TracebackType

import paramiko

from ...errors import UnreachableError
from ...install.names import printable
from .. import Running
from ..address import SshAddress
from ..deadline import Deadline
from ..settings import Settings
from .connect import Connector
from .running import SshRunning
from .watch import Watch

EXEC_SECONDS = 30.0


class SshTransport:
    """Commands behind ssh."""

    def __init__(self, address: SshAddress, settings: Settings, deadline: Deadline) -> None:
        """Connect to this address, within the deadline.

        Raises:
            UnreachableError: it cannot be reached, is not trusted, or lets nobody in.
        """
        self._name = str(address)
        self._deadline = deadline
        with contextlib.ExitStack() as stack:
            self._connection = Connector(address, settings, deadline, stack).connect()
            self._stack = stack.pop_all()

    def __enter__(self) -> SshTransport:
        """Nothing is left to do."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the connection, and those that it goes through."""
        self.close()

    def close(self) -> None:
        """End the connection, and those that it goes through."""
        self._stack.close()

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """See `Transport`."""
        seconds = self._deadline.within(EXEC_SECONDS)
        with Watch(self._connection, seconds, self._name, "start a command"):
            try:
                channel = self._connection.open_session()
                channel.exec_command(shlex.join(command))
            except (paramiko.SSHException, EOFError, OSError) as error:
                words = printable(str(error))[:300] or type(error).__name__
                raise UnreachableError(
                    f"{self._name} does not start a command: {words}",
                    expected="an account that may run commands",
                    hint="ddtree inspect host --help",
                ) from error
        return SshRunning(channel, stdin, self._name)
