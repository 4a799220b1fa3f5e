"""An install that lies in folders of this machine."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ..install.names import printable
from ..result import Unreadable
from .local import open_regular, read_regular
from .source import FileInfo, read_each
from .walk import Walk

# Small pieces would wait for the interpreter lock of a busy scan once per piece.
_CHUNK = 8 << 20


class DirectorySource:
    """A `Source` over package folders and module files.

    Args:
        root: what the report calls the location.
        parts: where each package or module lies, by its posix path below the root; an editable
            install may keep them in several places.
    """

    def __init__(self, root: Path, parts: Mapping[str, Path]) -> None:
        self.root = root
        self._parts = dict(parts)

    def add(self, parts: Mapping[str, Path]) -> None:
        """Take in more packages or modules, given like the first ones."""
        self._walk.add(parts)

    @property
    def location(self) -> str:
        """The root's path."""
        return printable(str(self.root))

    @property
    def independent_reads(self) -> bool:
        """Yes: every read opens its file anew."""
        return True

    def files(self) -> Mapping[str, FileInfo]:
        """Every regular file of the parts, by path, sorted; walked once."""
        return self._walk.files

    def problems(self) -> Sequence[Unreadable]:
        """What the walk had to leave out, and why."""
        return self._walk.problems

    def read(self, path: str) -> bytes:
        """The bytes of one file.

        Raises:
            OSError: it is not one of `files`, cannot be read, or is larger than `READ_LIMIT`.
        """
        return read_regular(self._real(path))

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """Each path with its bytes, or with the reason why there are none; in the given order."""
        return read_each(self.read, paths)

    def open(self, path: str) -> BinaryIO:
        """The file, unbuffered, to be closed by the caller.

        Raises:
            OSError: it is not one of `files`, or cannot be opened.
        """
        return open_regular(self._real(path))

    def digest(self, path: str, algorithm: str) -> bytes:
        """The hash of one file, read piece by piece.

        Raises:
            OSError: it is not one of `files`, or cannot be read.
        """
        state = hashlib.new(algorithm)
        size = self.files()[path].size if path in self.files() else 0
        buffer = memoryview(bytearray(min(size, _CHUNK) or 1))
        with open_regular(self._real(path)) as handle:
            while count := handle.readinto(buffer):
                state.update(buffer[:count])
        return state.digest()

    @cached_property
    def _walk(self) -> Walk:
        return Walk(self._parts)

    def _real(self, path: str) -> str:
        try:
            return self._walk.real[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
