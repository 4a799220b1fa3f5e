"""Tar archives: source distributions."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast

from ..errors import ArchiveError
from ..install.names import printable
from ..result import Unreadable
from .archive import Archive
from .damage import DAMAGE, MemberStream, reason
from .members import MAX_MEMBERS, Member, check_name, check_totals, refusal

# vLLM's source distributions inflate to about 100 MiB.
_MAX_INFLATED = 1 << 30
_MAX_RATIO = 200
_RATIO_FROM = 64 << 20
_CHUNK = 1 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def open_tar(path: Path) -> Archive:
    """Open a tar file, inflated first into a private temporary file without a name.

    Raises:
        ArchiveError: it is damaged, or holds what no build tool writes.
    """
    shown = printable(str(path))
    with contextlib.ExitStack() as stack:
        try:
            inflated = stack.enter_context(_inflated(path, shown))
            opened = stack.enter_context(tarfile.open(fileobj=inflated, mode="r:"))
            members, problems = _members(opened, shown, path.stat().st_mtime_ns)
        except ArchiveError:
            raise
        # RecursionError, which is a RuntimeError: headers nested a thousand deep.
        except (*DAMAGE, OSError) as error:
            raise refusal(shown, f"cannot be read as a tar file: {reason(error)}") from error
        check_totals(shown, members.values())
        return Archive(shown, members, problems, stack.pop_all().close)
    raise AssertionError("unreachable: an ExitStack swallows nothing")


@contextlib.contextmanager
def _inflated(path: Path, shown: str) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        packed = _unpacker(raw)
        if packed is None:
            yield raw
            return
        with tempfile.TemporaryFile(prefix="ddtree-") as spool:
            _copy(packed, spool, path.stat().st_size, shown)
            spool.seek(0)
            yield cast(BinaryIO, spool)


def _unpacker(raw: BinaryIO) -> _Readable | None:
    magic = raw.read(2)
    raw.seek(0)
    if magic == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=raw)
    if magic == b"BZ":
        return bz2.BZ2File(raw)
    return lzma.LZMAFile(raw) if magic == b"\xfd7" else None


def _copy(packed: _Readable, spool: IO[bytes], packed_size: int, shown: str) -> None:
    total = 0
    while chunk := packed.read(_CHUNK):
        total += len(chunk)
        bomb = total > _RATIO_FROM and total > _MAX_RATIO * packed_size
        if bomb or total > _MAX_INFLATED:
            raise refusal(shown, f"inflates to more than {total >> 20:,} MiB")
        spool.write(chunk)


def _members(
    opened: tarfile.TarFile, shown: str, changed: int
) -> tuple[dict[str, Member], list[Unreadable]]:
    members: dict[str, Member] = {}
    problems: list[Unreadable] = []
    last = -1
    for count, info in enumerate(opened):
        # A negative size in a header would send older Pythons round in circles.
        if info.offset <= last or info.size < 0 or count >= MAX_MEMBERS:
            raise refusal(shown, f"has headers that make no sense at member {count:,}")
        last = info.offset
        check_name(shown, info.name)
        name = printable(info.name.removeprefix("./"))
        if info.isreg():
            if name in members:
                raise refusal(shown, f"holds {name} twice")
            members[name] = _member(opened, info, name, changed)
        elif not info.isdir() and info.type not in (tarfile.XGLTYPE, tarfile.XHDTYPE):
            problems.append(Unreadable(name, "a link or device inside an archive"))
    return members, problems


def _member(opened: tarfile.TarFile, info: tarfile.TarInfo, name: str, changed: int) -> Member:
    def stream() -> MemberStream:
        # Never None: that is for what is no regular file.
        return MemberStream(cast(IO[bytes], opened.extractfile(info)))

    return Member(name, info.size, f"{info.offset_data}-{info.size}-{changed}", stream)
