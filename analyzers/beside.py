"""Work done in a forked process while this one goes on: engine paths are independent."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

T = TypeVar("T")


@contextmanager
def started(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Start `work` and give a function that waits for its result.

    The child sees all that was parsed before; its result comes back through a pipe. Where nothing
    can be forked, or the child does not live to answer, the work is done when it is asked for.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1 or os.cpu_count() == 1:
        yield work
        return
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer(writing, work)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            yield lambda: _result(pipe.read(), work)
    finally:
        _end(child)


def _answer(writing: int, work: Callable[[], T]) -> None:
    """Run in the child: it must never return into the parent's code, nor print a traceback."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        data = pickle.dumps(work())
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)


def _result(data: bytes, work: Callable[[], T]) -> T:
    # An empty answer is a child that was killed or met an error: here the error is raised.
    return cast(T, pickle.loads(data)) if data else work()


def _end(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.waitpid(child, 0)
