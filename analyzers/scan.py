"""One pass over all source files: every byte is read once, for the record and for the filters."""

from __future__ import annotations

from dataclasses import dataclass, field

from .install.check import RecordCheck
from .result import Unreadable
from .targets.source import Source


@dataclass(slots=True)
class Scan:
    """What the pass saw; `masks` are the files in which a mask could be built."""

    files: int = 0
    bytes: int = 0
    masks: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)


def scan(source: Source, check: RecordCheck) -> Scan:
    """Read every Python file of the source, and hand its bytes to the record check."""
    result = Scan(unreadable=list(source.problems()))
    for path, data in source.read_many(p for p in source.files() if p.endswith(".py")):
        if isinstance(data, OSError):
            result.unreadable.append(Unreadable(path, data.strerror or str(data)))
            continue
        result.files += 1
        result.bytes += len(data)
        check.feed(path, data)
        if may_build_mask(path, data):
            result.masks.append(path)
    return result


def may_build_mask(path: str, data: bytes) -> bool:
    """Whether a file is an attention backend that fills a matrix and closes it by infinities."""
    closes = (b"full(" in data and b"inf" in data) or b"eye(" in data
    return "/attention/backends/" in path and closes and b"for " in data
