"""What is left of a patch where vLLM is gone: `pip uninstall` knows of its own files alone."""

from __future__ import annotations

from pathlib import Path

from ..analyzers.errors import DdtreeError, TargetError
from ..analyzers.install.names import printable
from ..analyzers.targets.resolve import sites_of
from . import hints, journal
from .distribution import found_beside
from .leftovers import leftovers
from .place import Place, place_at
from .status import State, Status


class GoneError(TargetError):
    """There is no vLLM, but something of a patch of it."""

    def __init__(self, error: TargetError, place: Place, status: Status) -> None:
        """`error` says what was looked for."""
        super().__init__(
            f"{error.found}. {status.sentence.rstrip('.')}: {', '.join(status.leftovers)}",
            expected=error.expected,
            hint=status.repair[0],
        )
        self.place = place
        self.status = status


def refuse_remnants(error: TargetError, target: str | None, python: Path | None) -> None:
    """Refuse a target in which no vLLM was found, but something of a patch is.

    Args:
        error: says that there is no vLLM.

    Raises:
        GoneError: there is.
    """
    try:
        sites = sites_of(target, python)
    except DdtreeError:
        return
    for site in sites:
        place = place_at(site, python)
        status = _status(place, target or str(site))
        if status is not None:
            raise GoneError(error, place, status) from error


def _status(place: Place, target: str) -> Status | None:
    if (place.package / "__init__.py").exists():
        return None
    known = journal.journals(place)
    there = tuple(sorted(path.name for path in found_beside(place.site)))
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
