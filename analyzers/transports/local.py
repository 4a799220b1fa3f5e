"""Run a command on this machine."""

from __future__ import annotations

import atexit
import collections
import contextlib
import os
import queue
import shlex
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import IO

from ..errors import TargetError
from . import Running

# Longer than the harness needs to end an engine's processes, gently and then not.
PATIENCE_SECONDS = 20.0
LOG_LINES = 400
MOST_BYTES = 1 << 16
# What was started and not closed.
_ALIVE: set[LocalRunning] = set()


class LocalTransport:
    """Commands on this machine."""

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """Run a command in a session of its own, so that a terminal's Ctrl-C goes to us alone."""
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise TargetError(
                f"{command[0]} cannot be run: {error.strerror}",
                expected="a program of this machine",
                hint=f"command -v {shlex.quote(command[0])}",
            ) from error
        return LocalRunning(process, stdin)


class LocalRunning:
    """A process whose three streams are served by threads."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes) -> None:
        """Begin to serve them."""
        self._process = process
        self._chunks: queue.Queue[bytes | None] = queue.Queue()
        self._log: collections.deque[str] = collections.deque(maxlen=LOG_LINES)
        assert process.stdin and process.stdout and process.stderr
        self._threads = [
            threading.Thread(target=work, args=args, daemon=True)
            for work, args in (
                (_feed, (process.stdin, stdin)),
                (_take, (process.stdout, self._chunks)),
                (_listen, (process.stderr, self._log)),
            )
        ]
        _ALIVE.add(self)
        for thread in self._threads:
            thread.start()

    def chunk(self, timeout: float) -> bytes | None:
        """See `Running`."""
        try:
            return self._chunks.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None

    def log(self) -> tuple[str, ...]:
        """See `Running`."""
        return tuple(self._log)

    def close(self, patience: float | None = None) -> int:
        """See `Running`."""
        assert self._process.stdin
        # It may have ended already; what was left in the buffer is nobody's then.
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(PATIENCE_SECONDS if patience is None else patience)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        _ALIVE.discard(self)
        for thread in self._threads:
            thread.join(timeout=1.0)
        return code

    def kill(self) -> None:
        """End it and what it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@atexit.register
def _end_all() -> None:
    # An interrupt leaves the threads that would have closed them.
    for running in list(_ALIVE):
        running.kill()


def _feed(stream: IO[bytes], data: bytes) -> None:
    # The process may have ended, or was closed meanwhile; its exit code says why.
    with contextlib.suppress(OSError, ValueError):
        stream.write(data)
        stream.flush()


def _take(stream: IO[bytes], found: queue.Queue[bytes | None]) -> None:
    with stream:
        # Whatever is there already, without waiting for more.
        while data := os.read(stream.fileno(), MOST_BYTES):
            found.put(data)
    found.put(None)


def _listen(stream: IO[bytes], log: collections.deque[str]) -> None:
    with stream:
        while line := stream.readline(MOST_BYTES):
            log.append(line.decode("utf-8", "replace").rstrip())
