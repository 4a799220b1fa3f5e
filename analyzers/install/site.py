"""A folder that imports start from, seen through whatever carries its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Site(Protocol):
    """Read-only view of one site-packages folder, checkout, or archive root."""

    @property
    def location(self) -> str:
        """The folder, as a person would name it."""

    def names(self) -> Sequence[str]:
        """The names directly inside, sorted; empty if the folder cannot be listed."""

    def read(self, path: str) -> bytes:
        """The bytes of the file at `path`, relative to the folder.

        Raises:
            OSError: the file cannot be read.
        """


def text_of(site: Site, *paths: str) -> str:
    """The first of `paths` that can be read, as text; empty if none can."""
    for path in paths:
        try:
            data = site.read(path)
        except OSError:
            continue
        return data.decode("utf-8-sig", "surrogateescape")
    return ""
