"""Something on the way to a server that is not the server's friend."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Gets bytes that come from one side, and how many came from there before; what it returns goes on,
# and with None the link ends.
Meddle = Callable[[bytes, int], bytes | None]


def _nothing(data: bytes, _: int) -> bytes:
    return data


@contextmanager
def between(port: int, meddle: Meddle, outward: Meddle = _nothing) -> Iterator[int]:
    """The port of a proxy to a port of this machine.

    Args:
        port: the server's.
        meddle: sees what the server says.
        outward: sees what is said to the server.
    """

    def serve(near: socket.socket) -> list[socket.socket]:
        far = socket.create_connection(("127.0.0.1", port))
        for args in ((near, far, outward), (far, near, meddle)):
            threading.Thread(target=_carry, args=args, daemon=True).start()
        return [near, far]

    with _serving(serve) as mine:
        yield mine


@contextmanager
def listening() -> Iterator[tuple[socket.socket, int]]:
    """A port where connections are taken, and nobody says anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener, listener.getsockname()[1]
        # Wakes up whoever accepts.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def saying(words: bytes) -> Iterator[int]:
    """The port of a server that says something and then nothing any more."""

    def serve(near: socket.socket) -> list[socket.socket]:
        # It may not be heard out.
        with contextlib.suppress(OSError):
            near.sendall(words)
        return [near]

    with _serving(serve) as port:
        yield port


@contextmanager
def _serving(serve: Callable[[socket.socket], list[socket.socket]]) -> Iterator[int]:
    kept: list[socket.socket] = []

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                kept.extend(serve(listener.accept()[0]))

    with contextlib.ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        thread = threading.Thread(target=accept, args=(listener,), daemon=True)
        thread.start()
        yield port
        stack.close()
        thread.join()
        for end in kept:
            end.close()


def _carry(source: socket.socket, target: socket.socket, meddle: Meddle) -> None:
    so_far = 0
    # Either end may be gone at any moment.
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            passed = meddle(data, so_far)
            if passed is None:
                break
            so_far += len(data)
            target.sendall(passed)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
