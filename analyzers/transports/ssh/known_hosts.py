"""Which keys are trusted for a host: known_hosts files, read line by line.

A line that is damaged or of an unknown kind says nothing, and the others still hold.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# More is no list of hosts.
MOST_BYTES = 64 << 20


class Marker(enum.StrEnum):
    """What a line says about its key."""

    TRUSTED = ""
    AUTHORITY = "@cert-authority"
    REVOKED = "@revoked"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that speaks of a host."""

    marker: Marker
    kind: str
    key: bytes
    file: Path
    line: int


def entries(files: tuple[Path, ...], name: str) -> list[Entry]:
    """All lines of all files that speak of this host, by the name that they list it under."""
    return [entry for file in files for entry in _of_file(file, name)]


def fingerprint(key: bytes) -> str:
    """The fingerprint of a public key, as ssh-keygen shows it."""
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode()
    return "SHA256:" + digest.rstrip("=")


def hashed(name: str, salt: bytes) -> str:
    """A host's name as a line holds it that does not tell it."""
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return "|1|{}|{}".format(*(base64.b64encode(part).decode() for part in (salt, digest)))


def _of_file(file: Path, name: str) -> Iterator[Entry]:
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return
        lines = file.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        entry = _entry(line, name, file, number)
        if entry is not None:
            yield entry


def _entry(line: str, name: str, file: Path, number: int) -> Entry | None:
    fields = line.split()
    marker = Marker.TRUSTED
    if fields and fields[0].startswith("@"):
        if fields[0] not in set(Marker):
            return None
        marker = Marker(fields.pop(0))
    if len(fields) < 3 or fields[0].startswith("#") or not _speaks_of(fields[0], name):
        return None
    try:
        key = base64.b64decode(fields[2], validate=True)
    except (binascii.Error, ValueError):
        return None
    # A key opens with the name of its kind; what does not is cut off or something else.
    kind = fields[1].encode("utf-8", "surrogateescape")
    if not key.startswith(len(kind).to_bytes(4, "big") + kind):
        return None
    return Entry(marker, fields[1], key, file, number)


def _speaks_of(patterns: str, name: str) -> bool:
    if patterns.startswith("|"):
        return _is_hash_of(patterns, name)
    found = False
    for pattern in patterns.lower().split(","):
        if pattern.startswith("!"):
            if _matches(pattern[1:], name):
                return False
        else:
            found = found or _matches(pattern, name)
    return found


def _is_hash_of(text: str, name: str) -> bool:
    parts = text.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return False
    try:
        salt = base64.b64decode(parts[2], validate=True)
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hashed(name, salt).encode(), text.encode("utf-8", "replace"))


def _matches(pattern: str, name: str) -> bool:
    # Stars in a row would take exponential time.
    parts = re.split(r"(\*+|\?)", pattern)
    wild = {"*": ".*", "?": "."}
    regex = "".join(wild.get(part[:1], "") or re.escape(part) for part in parts if part)
    return re.fullmatch(regex, name, re.DOTALL) is not None
