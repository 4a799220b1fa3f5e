"""A limit for one step of a connection that the library itself would wait for without end."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Protocol

from ...errors import UnreachableError


class Closable(Protocol):
    """What wakes up whoever waits for it when it is closed."""

    def close(self) -> object:
        """Wake them up."""


class Watch:
    """Closes a connection when a step takes too long; the step then ends with an error."""

    def __init__(self, connection: Closable, seconds: float, shown: str, step: str) -> None:
        """Watch a step of a host's connection; `step` says what was waited for."""
        self._connection = connection
        self._words = f"{shown} did not {step} within {seconds:.3g} seconds"
        self._expired = threading.Event()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Watch:
        """Begin."""
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End; whatever the step failed with, it failed because of the time.

        Raises:
            UnreachableError: the time was over.
        """
        self._timer.cancel()
        if self._expired.is_set() and (kind is None or issubclass(kind, Exception)):
            raise UnreachableError(
                self._words,
                expected="an ssh server that answers",
                hint="ddtree inspect host --help",
            ) from None

    def _expire(self) -> None:
        self._expired.set()
        self._connection.close()
