"""One change of an install at a time, without leaving a lock behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..analyzers.errors import ConflictError
from .place import Place


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the package's folder for as long as the block runs.

    The lock is on the folder itself: it needs no file, is the same for every user, and ends with
    the process however that ends.

    Raises:
        ConflictError: somebody else holds it.
    """
    handle = os.open(place.package, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _take(handle, place)
        yield
    finally:
        os.close(handle)


def _take(handle: int, place: Place) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConflictError(
            f"another ddtree is changing {place.package}",
            expected="one change at a time",
            hint=f"fuser -v {place.package}",
        ) from None
