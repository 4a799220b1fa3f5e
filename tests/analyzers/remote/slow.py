"""A long way to a server: every byte takes its time, and is counted."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_PIECE = 1 << 16


@dataclass(slots=True)
class Way:
    """What passed so far.

    Attributes:
        port: where the near side connects to.
        delay: seconds that a byte takes in one direction.
        up: bytes to the server.
        down: bytes from it.
        turns: how often the near side spoke after it had heard something: the round trips.
    """

    port: int
    delay: float
    up: int = 0
    down: int = 0
    turns: int = 0
    _heard: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def passed(self, count: int, *, up: bool) -> None:
        """Count bytes, at the near end of the way."""
        with self._lock:
            if up:
                self.up += count
                self.turns += self._heard
            else:
                self.down += count
            self._heard = not up


@contextmanager
def slow(port: int, delay: float) -> Iterator[Way]:
    """A way to a port of this machine that takes `delay` seconds in each direction."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        way = Way(listener.getsockname()[1], delay)
        ends: list[socket.socket] = []
        threads: list[threading.Thread] = []
        first = threading.Thread(target=_accept, args=(listener, port, way, ends, threads))
        first.start()
        try:
            yield way
        finally:
            # Wakes up whoever waits for one of them.
            _shut(listener)
            first.join()
            for end in ends:
                _shut(end)
            for thread in threads:
                thread.join()
            for end in ends:
                end.close()


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket,
    port: int,
    way: Way,
    ends: list[socket.socket],
    threads: list[threading.Thread],
) -> None:
    with contextlib.suppress(OSError):
        while True:
            near = listener.accept()[0]
            ends.append(near)
            far = socket.create_connection(("127.0.0.1", port))
            ends.append(far)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target, up in ((near, far, True), (far, near, False)):
                threads += _carry(source, target, way, up=up)


def _carry(
    source: socket.socket, target: socket.socket, way: Way, *, up: bool
) -> list[threading.Thread]:
    """Two threads: one takes what comes, with the time; one hands it on when that is past."""
    waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def take() -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(_PIECE)
            except OSError:
                data = b""
            if up and data:
                way.passed(len(data), up=True)
            waiting.put((time.monotonic() + way.delay, data))

    def give() -> None:
        data = b"-"
        while data:
            due, data = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not up and data:
                way.passed(len(data), up=False)
            try:
                if data:
                    target.sendall(data)
            except OSError:
                break
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    threads = [threading.Thread(target=work) for work in (take, give)]
    for thread in threads:
        thread.start()
    return threads
