"""Which files of the package differ from what the installer recorded."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..result import Install
from ..targets.source import FileInfo, Source
from .record import Record, RecordEntry, is_bytecode

_PACKAGE = "vllm/"
# Files from here on are hashed beside the scan: hashlib lets other threads run meanwhile.
_BIG = 1 << 20


@dataclass(frozen=True, slots=True)
class Differences:
    """Paths relative to the root, sorted."""

    modified: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    # Same size as recorded, but no hash to compare: unhashed lines, unreadable or huge members.
    unverified: tuple[str, ...] = ()
    # Whether there was a record to compare with.
    compared: bool = True

    def onto(self, install: Install) -> Install:
        """The install with these differences filled in."""
        return replace(install, modified=self.modified, missing=self.missing, extra=self.extra)


class RecordCheck:
    """Compares the files under `vllm/` with RECORD while somebody else reads them.

    Usage: create it before the scan, `feed` it what the scan reads anyway, and call `finish`.
    Large files are hashed by a thread from the start; files that were never fed are hashed by
    `finish`. Plug-ins have records of their own and are not compared; nor is bytecode.

    Args:
        source: the bytes; `files` is called at once.
        record: what was recorded; None compares nothing.
        known: `digests` of an earlier check; an entry counts only while the stamp is the same.
        limit: bytes; larger files are compared by size alone and end in `unverified`.
    """

    def __init__(
        self,
        source: Source,
        record: Record | None,
        known: Mapping[str, tuple[str, str]] | None = None,
        limit: int | None = None,
    ) -> None:
        self._limit = limit
        self._source = source
        self._record = record
        self._files = source.files()
        # Path -> (stamp, digest in hex): JSON-ready, to be handed in as `known` the next time.
        self.digests: dict[str, tuple[str, str]] = {}
        self._expected = dict(_comparable(record)) if record else {}
        self._keep(known or {})
        self._thread = threading.Thread(target=self._hash_big, daemon=True)
        self._thread.start()

    def feed(self, path: str, data: bytes) -> None:
        """Take the bytes of one file; the order does not matter, and unknown paths are ignored."""
        entry, info = self._expected.get(path), self._files.get(path)
        if entry is not None and info is not None and entry.algorithm and path not in self.digests:
            self.digests[path] = (info.stamp, hashlib.new(entry.algorithm, data).hexdigest())

    def finish(self) -> Differences:
        """Hash what is left and say what differs."""
        if self._record is None:
            return Differences(compared=False)
        self._thread.join()
        self._hash(path for path, _ in self._unhashed() if path not in self.digests)
        modified: list[str] = []
        missing: list[str] = []
        unverified: list[str] = []
        for path, entry in self._expected.items():
            info = self._files.get(path)
            if info is None:
                (unverified if self._hidden(path) else missing).append(path)
            elif _sizes_differ(entry, info):
                modified.append(path)
            elif entry.digest is None or path not in self.digests:
                unverified.append(path)
            elif self.digests[path][1] != entry.digest.hex():
                modified.append(path)
        return Differences(
            tuple(sorted(modified)),
            tuple(sorted(missing)),
            tuple(self._extra()),
            tuple(sorted(unverified)),
        )

    def _keep(self, known: Mapping[str, tuple[str, str]]) -> None:
        for path, (stamp, digest) in known.items():
            info = self._files.get(path)
            if info is not None and info.stamp == stamp and path in self._expected:
                self.digests[path] = (stamp, digest)

    def _unhashed(self) -> Iterator[tuple[str, FileInfo]]:
        for path, entry in self._expected.items():
            info = self._files.get(path)
            if info is None or path in self.digests or _sizes_differ(entry, info):
                continue
            if entry.algorithm is not None and (self._limit is None or info.size <= self._limit):
                yield path, info

    def _hash_big(self) -> None:
        # Decided before the first hash: the other thread adds to `digests` meanwhile.
        big = [path for path, info in list(self._unhashed()) if info.size >= _BIG]
        self._hash(iter(big))

    def _hash(self, paths: Iterator[str]) -> None:
        for path in list(paths):
            algorithm = self._expected[path].algorithm
            try:
                digest = self._source.digest(path, algorithm) if algorithm else None
            except OSError:
                continue
            if digest is not None:
                self.digests[path] = (self._files[path].stamp, digest.hex())

    def _hidden(self, path: str) -> bool:
        """Whether the file may well be there, in a folder or behind a link that was left out."""
        return any(
            path == problem.file or path.startswith(f"{problem.file}/")
            for problem in self._source.problems()
        )

    def _extra(self) -> list[str]:
        return sorted(
            path
            for path in self._files
            if path.startswith(_PACKAGE) and path not in self._expected and not is_bytecode(path)
        )


def _comparable(record: Record) -> Iterator[tuple[str, RecordEntry]]:
    for path, entry in record.entries.items():
        if path.startswith(_PACKAGE) and not is_bytecode(path):
            yield path, entry


def _sizes_differ(entry: RecordEntry, info: FileInfo) -> bool:
    return entry.size is not None and entry.size != info.size
