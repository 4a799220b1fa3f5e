"""Run one command in a target, wherever it is: bytes go in, bytes come out.

A command needs no environment, no files and no signals of its own: it reads stdin until it ends,
and ends with it. Whatever reaches another machine or a container implements these two protocols,
one per file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Running(Protocol):
    """A command that runs."""

    def chunk(self, timeout: float) -> bytes | None:
        """The next bytes of stdout, at least one; None when there are no more.

        Raises:
            TimeoutError: there are none yet.
            TargetError: the way to the target broke.
        """

    def log(self) -> tuple[str, ...]:
        """The last lines of stderr so far."""

    def close(self, patience: float | None = None) -> int:
        """End stdin, wait until the command has ended, and if need be end it; its exit code.

        Args:
            patience: seconds that it gets to end by itself; what is usual when None.
        """


class Transport(Protocol):
    """A way to run commands in a target."""

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """Run a command; its stdin gets the bytes and stays open until `close`.

        Raises:
            TargetError: it cannot be started.
        """
