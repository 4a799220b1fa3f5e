"""Any command whose failure somebody on the way can explain."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import TargetError
from . import Running

# Says what an exit code and the last lines of stderr mean; None if they are the command's own.
Explain = Callable[[int, tuple[str, ...]], TargetError | None]


class ExplainedRunning:
    """A command that was started through another program, such as sudo or docker."""

    def __init__(self, running: Running, explain: Explain, *, always: bool = False) -> None:
        """Watch this command.

        Args:
            running: the command.
            explain: is asked when it fails.
            always: also when it had printed something before.
        """
        self._running = running
        self._explain = explain
        self._ask = True
        self._always = always

    def chunk(self, timeout: float) -> bytes | None:
        """See `Running`.

        Raises:
            TargetError: the command failed for a reason that is known.
        """
        chunk = self._running.chunk(timeout)
        if chunk is not None:
            self._ask = self._always
            return chunk
        if self._ask:
            self._ask = False
            code = self._running.close()
            failure = self._explain(code, self._running.log()) if code else None
            if failure is not None:
                raise failure
        return None

    def log(self) -> tuple[str, ...]:
        """See `Running`."""
        return self._running.log()

    def close(self, patience: float | None = None) -> int:
        """See `Running`."""
        return self._running.close(patience)
