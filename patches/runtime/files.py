"""Whether the files of the runtime are those that were put here."""

from __future__ import annotations

import base64
import csv
import hashlib
import pathlib
from collections.abc import Iterator


def damaged(package: pathlib.Path) -> list[str]:
    """The files of a package that are gone, cannot be read or are others than RECORD says.

    None are where nothing says what belongs to it, as in a checkout.
    """
    return [name for name, digest in _recorded(package) if _digest(package.parent / name) != digest]


def _recorded(package: pathlib.Path) -> Iterator[tuple[str, str]]:
    for record in package.parent.glob(f"{package.name}-*.dist-info/RECORD"):
        for name, digest, *_ in csv.reader(record.read_text().splitlines()):
            if name.startswith(f"{package.name}/") and digest:
                yield name, digest.partition("=")[2]


def _digest(file: pathlib.Path) -> str | None:
    try:
        digest = hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return None
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
