"""Reading local files without being held up by what is no file."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from ..install.names import printable
from .source import READ_LIMIT

# A FIFO that nobody writes to would block an open for ever.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str) -> io.FileIO:
    """Open a regular file for reading, following links.

    Raises:
        OSError: it cannot be opened, or is a folder, a device or a pipe.
    """
    descriptor = os.open(path, _FLAGS)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return io.FileIO(descriptor)
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


def read_regular(path: str, limit: int = READ_LIMIT) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: as `open_regular`, or the file is larger than `limit`.
    """
    with open_regular(path) as handle:
        if os.fstat(handle.fileno()).st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit >> 20} MiB", path)
        return handle.readall()


def is_file(path: Path) -> bool:
    """Whether a regular file is there; what may not be looked at is not (`Path` would raise)."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: Path) -> bool:
    """Whether a folder is there; what may not be looked at is not (`Path` would raise)."""
    return os.path.isdir(path)  # noqa: PTH112


class LocalSite:
    """A folder on this machine as a `Site`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: list[str] | None = None

    @property
    def location(self) -> str:
        """The folder's path."""
        return printable(str(self.folder))

    def names(self) -> Sequence[str]:
        """The names inside, sorted; empty if the folder cannot be listed."""
        if self._names is None:
            try:
                self._names = sorted(path.name for path in self.folder.iterdir())
            except OSError:
                self._names = []
        return self._names

    def read(self, path: str) -> bytes:
        """The bytes of the file at `path` below the folder.

        Raises:
            OSError: it cannot be read.
        """
        return read_regular(os.path.join(self.folder, path))  # noqa: PTH118
