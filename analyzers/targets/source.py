"""The one interface behind which an install's bytes are read, whatever carries them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..result import Install, Plugin


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file of the install; `path` is posix and relative to the root of the source."""

    path: str
    size: int
    # Changes when the content does: (mtime_ns, inode) on disk, the CRC in an archive.
    stamp: str


class Source(Protocol):
    """Read-only access to the files of one install.

    The root is the folder that holds the `vllm` package (a site-packages folder, a checkout, an
    archive's root), so that paths read `vllm/v1/...`.
    """

    @property
    def location(self) -> str:
        """The root, as a person would name it."""

    def files(self) -> Mapping[str, FileInfo]:
        """Every regular file of the package and of the plug-ins beside it, by path."""

    def read(self, path: str) -> bytes:
        """The bytes of one file.

        Raises:
            OSError: the file cannot be read.
        """

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """Each path with its bytes, or with the reason why there are none; in the given order."""


@dataclass(frozen=True, slots=True)
class Target:
    """A located install: what the user named, its bytes, its facts, and its plug-ins' modules."""

    name: str
    source: Source
    install: Install
    # Entry points whose code lies within the source, so that the rules can read it too.
    plugins: tuple[Plugin, ...] = ()
