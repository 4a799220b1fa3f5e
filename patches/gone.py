"""What is left of a patch where vLLM is gone: `pip uninstall` knows of its own files alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..analyzers.errors import DdtreeError, TargetError
from ..analyzers.install.names import printable
from ..analyzers.targets.resolve import sites_of
from . import hints, journal
from .distribution import PACKAGE
from .leftovers import leftovers
from .place import Place, place_at
from .status import State, Status


def remnants(target: str | None, python: Path | None) -> tuple[Place, Status] | None:
    """What lies where a target leads to, in which no vLLM was found; None if that is nothing."""
    try:
        sites = sites_of(target, python)
    except DdtreeError:
        return None
    for site in sites:
        place = place_at(site, python)
        status = _status(place, target or str(site))
        if status is not None:
            return place, status
    return None


def explained(error: TargetError, status: Status) -> TargetError:
    """The error of a command that needs vLLM, which also tells what is left of a patch."""
    return TargetError(
        " ".join([f"{error.found}. {status.sentence}", *status.leftovers]),
        expected=f"{error.expected}; or take away what is left",
        hint=hints.patch(status.target, "--revert"),
    )


def _status(place: Place, target: str) -> Status | None:
    known = journal.journals(place)
    there = tuple(sorted(_beside(place.site)))
    left = leftovers(place, known)
    if not (known or there or left):
        return None
    kept = f"; its journal is in {known[0].folder}" if known else ""
    return Status(
        target=printable(target),
        location=printable(str(place.named)),
        version=None,
        state=State.REMNANTS,
        sentence=f"There is no vLLM here any more, and something of its patch is left{kept}.",
        plan_id=known[0].plan_id if known else None,
        recipe=known[0].recipe if known else None,
        files={},
        runtime=(),
        foreign=(),
        repair=(hints.patch(printable(target), "--revert"),),
        leftovers=(*there, *left),
    )


def _beside(site: Path) -> Iterator[str]:
    for path in (site / PACKAGE, *site.glob(f"{PACKAGE}-*.dist-info")):
        if os.path.lexists(path):
            yield path.name
