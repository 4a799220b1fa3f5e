"""What an archive may hold: names that stay inside, sizes that a person could have meant."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..errors import ArchiveError
from ..install.names import printable

# A CUDA wheel unpacks to about 2 GiB in 6,000 members, of which 50 MiB are text.
MAX_MEMBERS = 200_000
MAX_TOTAL = 64 << 30
MAX_TEXT = 1 << 30
_TEXT = (".py", ".pyi", ".txt", ".json", ".md")


@dataclass(frozen=True, slots=True)
class Member:
    """One regular file of an archive; `size` in bytes, as declared."""

    name: str
    size: int
    stamp: str
    open: Callable[[], io.RawIOBase]
    # Why its content must not be read; empty if it may be.
    refused: str = ""


def refusal(archive: str, what: str) -> ArchiveError:
    """The error about an archive that no build tool would have written."""
    zipped = archive.endswith((".whl", ".zip"))
    quoted = shlex.quote(archive)
    return ArchiveError(
        f"{archive} {what}",
        expected="a wheel or sdist of vLLM as a build tool writes it",
        hint=f"python -m zipfile -l {quoted}" if zipped else f"tar -tf {quoted}",
    )


def check_name(archive: str, name: str) -> None:
    """Refuse a member name that leads out of the folder it is unpacked to.

    Raises:
        ArchiveError: the name is absolute, climbs with `..`, or means other things elsewhere.
    """
    drive = name[1:2] == ":"
    if (
        not name
        or name.startswith("/")
        or "\\" in name
        or "\0" in name
        or drive
        or ".." in name.split("/")
    ):
        raise refusal(archive, f"holds a member named {printable(name)!r}, which leads outside")


def check_totals(archive: str, members: Iterable[Member]) -> None:
    """Refuse an archive that is too much for any install.

    Raises:
        ArchiveError: too many bytes in all, or too many bytes of text.
    """
    total = text = 0
    for member in members:
        total += member.size
        text += member.size if member.name.endswith(_TEXT) else 0
    if total > MAX_TOTAL:
        raise refusal(archive, f"claims to unpack to {total >> 30:,} GiB")
    if text > MAX_TEXT:
        raise refusal(archive, f"claims to hold {text >> 20:,} MiB of text")
