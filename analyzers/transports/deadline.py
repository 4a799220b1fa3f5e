"""Time that runs out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from ..errors import UnreachableError


class Deadline:
    """A moment until which everything has to be done, if there is one."""

    def __init__(self, seconds: float | None, name: str) -> None:
        """Begin to count; `name` is what takes so long."""
        self._seconds = seconds
        self._name = name
        self._end = None if seconds is None else time.monotonic() + seconds

    def within(self, seconds: float) -> float:
        """At most so many seconds from now, and not past the end.

        Raises:
            UnreachableError: the end is past.
        """
        if self._end is None:
            return seconds
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return min(seconds, left)

    def over(self) -> bool:
        """Whether the end is past."""
        return self._end is not None and time.monotonic() >= self._end

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand, since a person is asked."""
        began = time.monotonic()
        try:
            yield
        finally:
            if self._end is not None:
                self._end += time.monotonic() - began

    def passed(self) -> UnreachableError:
        """What to say when the end is past."""
        return UnreachableError(
            f"{self._name} was not done after {self._seconds:g} seconds",
            expected="a target that answers in time, or a larger --timeout",
            hint="ddtree inspect host --help",
        )
