"""The files of an install on another machine, as far as they have been carried here."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import BinaryIO

from ..result import Unreadable
from ..targets.source import READ_LIMIT, FileInfo, read_each
from .ask import Asked
from .message import Answer, Facts

# Reads the paths on the other side, with what they import (`around`) but what is `known`.
Carry = Callable[[Sequence[str], bool, Sequence[str]], Asked]
# After so many commands for files that were missing, all the rest is carried.
_MOST_GUESSES = 3


class _Missing(Exception):
    """A forked process needs a file that has to be asked for; its parent has to do the work."""


class RemoteSource:
    """A `Source` over a reply; what it lacks is asked for by another command."""

    def __init__(self, answer: Answer, asked: Asked, carry: Carry) -> None:
        """Take the files that came with the answer."""
        self._answer = answer
        self._contents = dict(asked.contents)
        self._broken = dict(asked.reply.broken)
        for item in answer.seen.scan.unreadable:
            self._broken.setdefault(item.file, item.reason)
        self._carry = carry
        self._process = os.getpid()
        # How many commands were run, and how many bytes came for them.
        self.commands = 1
        self.received = asked.received

    @property
    def facts(self) -> Facts:
        """Where the install is on the other side."""
        return self._answer.facts

    @property
    def location(self) -> str:
        """The root's path on the other side."""
        return self._answer.facts.location

    @property
    def independent_reads(self) -> bool:
        """Yes: what was carried is in memory."""
        return True

    def files(self) -> Mapping[str, FileInfo]:
        """Every regular file there, by path, sorted."""
        return self._files

    def problems(self) -> Sequence[Unreadable]:
        """What the walk there had to leave out, and why."""
        return self._answer.problems

    def read(self, path: str) -> bytes:
        """The bytes of one file; asked for if they were not carried yet.

        Raises:
            OSError: it is not one of `files`, or cannot be read there.
            TargetError: the other side cannot be asked any more.
        """
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self._files[path].size > READ_LIMIT:
            raise OSError(errno.EFBIG, f"larger than {READ_LIMIT >> 20} MiB", path)
        if path not in self._contents and path not in self._broken:
            self._guess(path)
        if path in self._contents:
            return self._contents[path]
        raise OSError(errno.EIO, self._broken.get(path, "was not sent"), path)

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """Each path with its bytes, or with the reason why there are none; in the given order."""
        return read_each(self.read, paths)

    def open(self, path: str) -> BinaryIO:
        """The bytes of one file as a stream.

        Raises:
            OSError: as `read`.
        """
        return io.BytesIO(self.read(path))

    def digest(self, path: str, algorithm: str) -> bytes:
        """The hash of one file.

        Raises:
            OSError: as `read`.
        """
        return hashlib.new(algorithm, self.read(path)).digest()

    def fetch(self, paths: Sequence[str]) -> Mapping[str, bytes]:
        """The bytes of files below `location` by path, read now and by one command.

        Files of the metadata may be named as well.

        Raises:
            OSError: one of them cannot be read there.
            TargetError: the other side cannot be asked any more.
        """
        asked = self._asked(self._carry(paths, False, ()))
        for path in paths:
            if path not in asked.contents:
                raise OSError(errno.EIO, asked.reply.broken.get(path, "was not sent"), path)
        self._contents.update((path, asked.contents[path]) for path in paths)
        return {path: asked.contents[path] for path in paths}

    def _guess(self, path: str) -> None:
        """Ask for a file, and for what will probably be read next."""
        if os.getpid() != self._process:
            raise _Missing(path)
        around = self.commands <= _MOST_GUESSES
        paths = [path] if around else [one for one in self._files if self._lacks(one)]
        asked = self._asked(self._carry([path, *paths], around, list(self._contents)))
        self._contents.update(asked.contents)
        self._broken.update(asked.reply.broken)
        if path not in self._contents:
            self._broken.setdefault(path, "was not sent")

    def _lacks(self, path: str) -> bool:
        return path.endswith(".py") and path not in self._contents and path not in self._broken

    def _asked(self, asked: Asked) -> Asked:
        self.commands += 1
        self.received += asked.received
        return asked

    @cached_property
    def _files(self) -> dict[str, FileInfo]:
        stamp = self._answer.seen.fingerprint
        sizes = self._answer.sizes
        return {path: FileInfo(path, sizes[path], stamp) for path in sorted(sizes)}
