"""The inspection of one target: what is known of the same bytes already, else a study of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .cache import Reports
from .install.check import RecordCheck
from .progress import Say, silent
from .result import Report
from .targets.resolve import open_target
from .targets.source import Target
from .transports.address import is_address
from .transports.settings import Settings


def inspect_target(
    target: str | None,
    *,
    python: Path | None = None,
    cache: bool = True,
    progress: Say = silent,
    settings: Settings | None = None,
) -> Report:
    """Prove from the installed files what a vLLM verifies.

    Args:
        target: what the user named: an address, or see `open_target`.
        python: the interpreter whose environment is meant when there is no target; at an address,
            the interpreter or environment there.
        cache: use and keep the result of an earlier inspection of the same bytes.
        progress: told what is being done, for a person who waits.
        settings: how other machines are reached.

    Raises:
        DdtreeError: the target cannot be found or read.
    """
    if target is not None and is_address(target):
        # What reaches other machines takes time to import, and most runs need none of it.
        from .remote.reach import reached_target

        named = None if python is None else str(python)
        there = reached_target(target, settings or Settings(), python=named, progress=progress)
        return inspect_opened(there, cache=cache, progress=progress)
    with open_target(target, python=python, progress=progress) as opened:
        return inspect_opened(opened, cache=cache, progress=progress)


def inspect_opened(opened: Target, *, cache: bool = True, progress: Say = silent) -> Report:
    """Prove the same of a target that is open already."""
    if not cache:
        return _study(opened, progress)[0]
    reports = Reports(opened)
    known = reports.load()
    if known is not None:
        return known
    report, check = _study(opened, progress)
    reports.save(report, check.digests)
    return report


def _study(target: Target, progress: Say) -> tuple[Report, RecordCheck]:
    with _no_collection():
        # libcst takes longer to import than a known report takes to load.
        from .study import study

        return study(target, progress)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Importing and parsing make millions of objects and no garbage: collecting is in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
