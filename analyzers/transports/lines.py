"""The lines of what a command prints."""

from __future__ import annotations

import time
from collections import deque

from ..errors import TargetError
from . import Running

# Tokens and gaps of many prompts are one line; more than this is nothing that was agreed on.
MOST_BYTES = 64 << 20


class Lines:
    """Cuts the chunks of a running command into lines."""

    def __init__(self, running: Running) -> None:
        """Take lines of this command."""
        self._running = running
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._ended = False

    def next(self, timeout: float) -> bytes | None:
        """The next line without its end; None when there are no more.

        Raises:
            TimeoutError: there is none yet.
            TargetError: the way to the target broke, or a line has no end.
        """
        until = time.monotonic() + timeout
        while not self._lines and not self._ended:
            self._take(self._running.chunk(max(0.0, until - time.monotonic())))
        return self._lines.popleft() if self._lines else None

    def _take(self, chunk: bytes | None) -> None:
        if chunk is None:
            self._ended = True
            if self._rest:
                self._lines.append(bytes(self._rest).rstrip(b"\r"))
            return
        self._rest += chunk
        if b"\n" in chunk:
            *whole, rest = self._rest.split(b"\n")
            self._lines.extend(bytes(line).rstrip(b"\r") for line in whole)
            self._rest = rest
        if len(self._rest) > MOST_BYTES:
            raise TargetError(
                f"the target printed a line of more than {MOST_BYTES >> 20} MiB",
                expected="one event a line",
                hint="ddtree verify --help",
            )
