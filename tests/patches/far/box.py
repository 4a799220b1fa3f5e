"""A tiny vLLM in an environment of its own, as another machine has it."""

from __future__ import annotations

import venv
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ddtree.analyzers.remote.ask import Opener
from ddtree.analyzers.transports import Running, Transport
from ddtree.analyzers.transports.local import LocalTransport
from ddtree.patches.far import remote
from ddtree.patches.far.remote import Far
from ddtree.patches.perform import Options
from ddtree.patches.status import Status

from .. import mini


@dataclass(frozen=True, slots=True)
class Box:
    """An environment with a tiny vLLM, and the way to it."""

    install: mini.Mini
    far: Far

    @property
    def options(self) -> Options:
        """What every function of `remote` takes."""
        return replace(self.install.options, target=None)

    def status(self) -> Status:
        """What a status command says."""
        found = remote.status(self.far, self.options)
        assert isinstance(found, Status)
        return found

    def snapshot(self) -> object:
        """Everything in the site."""
        return mini.snapshot(self.install.site)


@contextmanager
def here() -> Iterator[Transport]:
    """This machine as another one."""
    yield LocalTransport()


def make(root: Path, opener: Opener = here) -> Box:
    """A new environment below `root`."""
    prefix = root / "env"
    venv.create(prefix, symlinks=True)
    (site,) = prefix.glob("lib/python3*/site-packages")
    far = Far("user@box", opener, str(prefix), ("ssh", "user@box"))
    return Box(mini.make(root, site=site), far)


class Tampered:
    """A transport whose requests or replies are changed on the way."""

    def __init__(self, requests: int | None = None, reply: Sequence[bytes] | None = None) -> None:
        """Cut requests after so many bytes, or send this in place of every reply."""
        self._requests = requests
        self._reply = reply

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """See `Transport`."""
        running = LocalTransport().start(command, stdin[: self._requests])
        return running if self._reply is None else _Replaced(running, list(self._reply))

    def __call__(self) -> AbstractContextManager[Transport]:
        """An opener."""
        return self._open()

    @contextmanager
    def _open(self) -> Iterator[Transport]:
        yield self


class _Replaced:
    def __init__(self, running: Running, reply: list[bytes]) -> None:
        self._running = running
        self._reply = reply
        self._ended = False
        self.log = running.log
        self.close = running.close

    def chunk(self, timeout: float) -> bytes | None:
        while not self._ended:
            self._ended = self._running.chunk(timeout) is None
        return self._reply.pop(0) if self._reply else None
