"""One change of an install at a time, without leaving a lock behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ..analyzers.errors import ConflictError
from .place import Place

_Found = TypeVar("_Found")


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the package's folder for as long as the block runs; the site's where that is gone.

    The lock is on the folder itself: it needs no file, is the same for every user, and ends with
    the process however that ends.

    Raises:
        ConflictError: somebody else holds it.
    """
    folder = place.package if place.package.is_dir() else place.site
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _take(handle, folder)
        yield
    finally:
        os.close(handle)


def settled(
    place: Place, look: Callable[[bool], _Found], steady: Callable[[_Found], bool]
) -> _Found:
    """What a look at an install finds; under the lock where it may be a picture of a change.

    Args:
        look: is told whether this process holds the lock.
        steady: whether a finding can be no picture of a change that is being made.

    Raises:
        ConflictError: what `look` raises under the lock, or somebody else holds it.
    """
    try:
        found = look(False)
        if steady(found):
            return found
    except ConflictError:
        # Half of a change may well look like a conflict.
        pass
    with locked(place):
        return look(True)


def _take(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConflictError(
            f"another ddtree is changing {folder}",
            expected="one change at a time",
            hint=f"fuser -v {folder}",
        ) from None
