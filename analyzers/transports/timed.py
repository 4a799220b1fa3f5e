"""Any transport, until a deadline."""

from __future__ import annotations

from collections.abc import Sequence

from . import Running, Transport
from .deadline import Deadline


class TimedTransport:
    """Commands that have to be done in time."""

    def __init__(self, transport: Transport, deadline: Deadline) -> None:
        """Let this transport run until then."""
        self._transport = transport
        self._deadline = deadline

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """See `Transport`."""
        self._deadline.within(0.0)
        return _TimedRunning(self._transport.start(command, stdin), self._deadline)


class _TimedRunning:
    def __init__(self, running: Running, deadline: Deadline) -> None:
        self._running = running
        self._deadline = deadline

    def chunk(self, timeout: float) -> bytes | None:
        """See `Running`.

        Raises:
            UnreachableError: time ran out.
        """
        try:
            return self._running.chunk(self._deadline.within(timeout))
        except TimeoutError:
            if self._deadline.over():
                raise self._deadline.passed() from None
            raise

    def log(self) -> tuple[str, ...]:
        """See `Running`."""
        return self._running.log()

    def close(self, patience: float | None = None) -> int:
        """See `Running`."""
        return self._running.close(patience)
