"""Tree verification inside a running vLLM; copied beside it as a package of its own.

It is loaded whole or not at all: a file that is not as it was put here could do half of its work,
with trees and without. The hooks in vLLM do nothing then, and refuse trees.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import pathlib
from collections.abc import Iterator


def _damaged(package: pathlib.Path) -> list[str]:
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


# What looks is in no other file: half of that could find everything as it was.
_wrong = _damaged(pathlib.Path(__file__).parent)
if _wrong:
    raise ImportError(f"not as it was put here: {', '.join(_wrong)}")
