"""An install inside an archive, read in place."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from ..result import Unreadable
from .damage import damage_is_oserror
from .members import Member
from .source import READ_LIMIT, FileInfo, read_each

# Beyond this, hashing a member would mean to inflate a compiled library for nothing else.
_DIGEST_LIMIT = 8 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """An open archive: its members by the path that they are installed under."""

    location: str
    members: Mapping[str, Member]
    problems: Sequence[Unreadable]
    close: Callable[[], None]

    def below(self, prefix: str) -> Archive:
        """The same archive with only what lies below `prefix`, which ends in a slash."""
        cut = len(prefix)
        return Archive(
            self.location,
            {
                path[cut:]: member
                for path, member in self.members.items()
                if path.startswith(prefix)
            },
            [
                Unreadable(problem.file[cut:], problem.reason)
                for problem in self.problems
                if problem.file.startswith(prefix)
            ],
            self.close,
        )


class ArchiveSite:
    """The root of an archive as a `Site`."""

    def __init__(self, archive: Archive) -> None:
        self._members = archive.members
        self.location = archive.location

    def names(self) -> Sequence[str]:
        """The top-level names, sorted."""
        return self._names

    def read(self, path: str) -> bytes:
        """The content of the member at `path`.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        return _content(_member(self._members, path))

    @cached_property
    def _names(self) -> list[str]:
        return sorted({path.partition("/")[0] for path in self._members})


class ArchiveSource:
    """A `Source` over the packages and modules of an archive; `parts` are their paths."""

    def __init__(self, archive: Archive, parts: Iterable[str]) -> None:
        self._archive = archive
        self._parts = tuple(parts)

    @property
    def location(self) -> str:
        """The archive's path."""
        return self._archive.location

    @property
    def independent_reads(self) -> bool:
        """No: forked processes would share the position in the archive's file."""
        return False

    def files(self) -> Mapping[str, FileInfo]:
        """Every regular file of the parts, by path, sorted."""
        return self._files

    def problems(self) -> Sequence[Unreadable]:
        """Members of the parts that are no regular files."""
        return [problem for problem in self._archive.problems if self._covers(problem.file)]

    def read(self, path: str) -> bytes:
        """The content of one file, checked against its CRC where the archive has one.

        Raises:
            OSError: it is not one of `files`, is damaged, or is larger than `READ_LIMIT`.
        """
        self._check(path)
        return _content(self._archive.members[path])

    def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """Each path with its content, or with the reason why there is none; in the given order."""
        return read_each(self.read, paths)

    def open(self, path: str) -> BinaryIO:
        """The content of one file as a buffered stream, to be closed by the caller.

        Raises:
            OSError: it is not one of `files`, or is damaged.
        """
        self._check(path)
        return io.BufferedReader(_opened(self._archive.members[path]))

    def digest(self, path: str, algorithm: str) -> bytes | None:
        """The hash of one file; None beyond 8 MiB, which would take long to inflate.

        Raises:
            OSError: it is not one of `files`, or is damaged.
        """
        if path in self._files and self._files[path].size > _DIGEST_LIMIT:
            return None
        return hashlib.new(algorithm, self.read(path)).digest()

    @cached_property
    def _files(self) -> dict[str, FileInfo]:
        return {
            path: FileInfo(path, member.size, member.stamp)
            for path, member in sorted(self._archive.members.items())
            if self._covers(path) and "/__pycache__/" not in path
        }

    def _covers(self, path: str) -> bool:
        return any(path == part or path.startswith(f"{part}/") for part in self._parts)

    def _check(self, path: str) -> None:
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _member(members: Mapping[str, Member], path: str) -> Member:
    try:
        return members[path]
    except KeyError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


def _content(member: Member) -> bytes:
    if member.size > READ_LIMIT:
        raise OSError(errno.EFBIG, f"larger than {READ_LIMIT >> 20} MiB", member.name)
    # One byte more than declared: the end is reached, where the CRC is checked, and a member that
    # inflates to more than it declares is never held whole.
    with _opened(member) as stream:
        return stream.read(member.size + 1) or b""


def _opened(member: Member) -> io.RawIOBase:
    if member.refused:
        raise OSError(errno.EIO, member.refused, member.name)
    with damage_is_oserror():
        return member.open()
