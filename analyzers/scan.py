"""One pass over all source files: every byte is read once, for the record and for the filters."""

from __future__ import annotations

from dataclasses import dataclass

from .install.check import Differences, RecordCheck
from .result import Unreadable
from .targets.source import Source


@dataclass(frozen=True, slots=True)
class Scan:
    """What the pass saw; `masks` are the files in which a mask could be built."""

    files: int = 0
    bytes: int = 0
    masks: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What was looked at where the files lie, so that they need not all be carried here.

    Attributes:
        scan: what the pass over the source files saw.
        differences: from what the installer recorded.
        libraries: what compiled libraries carry; see `compiled_verifiers`.
        fingerprint: changes when any file of the install does.
    """

    scan: Scan
    differences: Differences
    libraries: tuple[str, ...]
    fingerprint: str


def scan(source: Source, check: RecordCheck) -> Scan:
    """Read every Python file of the source, and hand its bytes to the record check."""
    masks: list[str] = []
    unreadable = list(source.problems())
    files = size = 0
    for path, data in source.read_many(p for p in source.files() if p.endswith(".py")):
        if isinstance(data, OSError):
            unreadable.append(Unreadable(path, data.strerror or str(data)))
            continue
        files += 1
        size += len(data)
        check.feed(path, data)
        if may_build_mask(path, data):
            masks.append(path)
    return Scan(files, size, tuple(masks), tuple(unreadable))


def may_build_mask(path: str, data: bytes) -> bool:
    """Whether a file is an attention backend that fills a matrix and closes it by infinities."""
    closes = (b"full(" in data and b"inf" in data) or b"eye(" in data
    return "/attention/backends/" in path and closes and b"for " in data
