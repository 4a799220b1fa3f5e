"""RECORD: what the installer wrote down about the files that it wrote."""

from __future__ import annotations

import base64
import binascii
import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .names import printable

# What the wheel specification allows; weaker algorithms prove nothing.
_DIGEST_BYTES = {"sha256": 32, "sha384": 48, "sha512": 64}

# Installers put what lies below these folders of a wheel into the site itself.
_DATA = re.compile(r"^[^/]+\.data/(?:purelib|platlib)/")


def installed_path(path: str) -> str:
    """Where a member of a wheel lies once it is installed, relative to the site."""
    return _DATA.sub("", path)


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """One file as recorded; `size` in bytes; None where the line does not say."""

    algorithm: str | None = None
    digest: bytes | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The recorded files of one distribution by path relative to its site."""

    entries: Mapping[str, RecordEntry] = field(default_factory=lambda: MappingProxyType({}))
    # Lines that could not be understood.
    malformed: int = 0


def parse_record(data: bytes) -> Record:
    """Read a RECORD file; lines that make no sense are counted, never fatal.

    Paths that leave the site (scripts, headers) are left out: an inspection does not follow them.
    Source: the "Recording installed projects" specification of packaging.python.org.
    """
    entries: dict[str, RecordEntry] = {}
    malformed = 0
    for row in _rows(data.decode("utf-8", "surrogateescape")):
        path = _site_path(row[0]) if row else None
        if row and (len(row) > 3 or not row[0] or "\0" in row[0]):
            malformed += 1
        elif path is not None:
            entries[path] = _entry(row)
    return Record(entries, malformed)


def is_bytecode(path: str) -> bool:
    """Whether a file is compiled bytecode, which comes and goes by itself."""
    return path.endswith((".pyc", ".pyo")) or "/__pycache__/" in path


def _rows(text: str) -> Iterator[list[str]]:
    reader = csv.reader(text.splitlines())
    while True:
        try:
            row = next(reader, None)
        except csv.Error:
            # A field beyond csv's limit: the reader goes on with the next line.
            row = ["", "", "", ""]
        if row is None:
            return
        yield row


def _site_path(raw: str) -> str | None:
    path = raw.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    outside = path.startswith("/") or ".." in parts or (bool(parts) and parts[0].endswith(":"))
    return None if outside or not parts else installed_path(printable("/".join(parts)))


def _entry(row: list[str]) -> RecordEntry:
    algorithm, _, encoded = (row[1] if len(row) > 1 else "").partition("=")
    size = row[2].strip() if len(row) > 2 else ""
    digest = _decoded(encoded) if algorithm in _DIGEST_BYTES else None
    known = digest is not None and len(digest) == _DIGEST_BYTES[algorithm]
    return RecordEntry(
        algorithm if known else None,
        digest if known else None,
        int(size) if size.isascii() and size.isdecimal() and len(size) < 20 else None,
    )


def _decoded(encoded: str) -> bytes | None:
    padded = encoded.rstrip("=") + "=" * (-len(encoded.rstrip("=")) % 4)
    try:
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
