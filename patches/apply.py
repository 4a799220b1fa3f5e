"""Execute a plan: all of it, or nothing.

The order is what makes that true. The journal with the original bytes is durable before the first
byte of the install changes. All new content lands under temporary names. The edited files are then
renamed into place, each harmless without the runtime. The last rename brings the runtime's package
and with it everything to life. Whatever fails before the journal says `applied` is undone.
"""

from __future__ import annotations

from pathlib import Path

from ..analyzers.errors import ConflictError, DdtreeError
from ..analyzers.result import Install
from . import disk, hints, journal
from .bytecode import compiled
from .check import check, refuse_broken
from .disk import Attributes
from .distribution import TOPS
from .errors import RecoveryPending, RolledBack
from .journal import Journal, Phase
from .lock import locked
from .place import Place
from .plan import Plan
from .preflight import preflight
from .undo import undo


def apply(
    plan: Plan,
    install: Install,
    place: Place,
    *,
    force: bool = False,
    imports: bool = False,
) -> tuple[str, ...]:
    """Change the install as planned; sentences about what could not be checked afterwards.

    Args:
        imports: import the edited modules, before and after; most of them need torch.

    Raises:
        ConflictError: nothing was written: an obstacle, or a byte changed since the plan.
        RolledBack: it failed, and all is as before.
        RecoveryPending: it failed, and so did the undo; the next command tries again.
    """
    with locked(place):
        preflight(plan, install, place, force=force)
        refuse_stale(plan, place)
        if imports:
            refuse_broken(plan, place)
        draft = journal.drafted(plan, place)
        try:
            journal.begin(draft, tuple(item.old for item in plan.edits))
            _stage(plan, draft, place)
            _activate(plan, draft, place)
            notes = check(plan, draft, place, imports=imports)
            journal.enter(draft, Phase.APPLIED)
        except BaseException as error:
            roll_back(draft, place, error)
            raise
        return notes


def refuse_stale(plan: Plan, place: Place) -> None:
    """Refuse a plan for bytes that are no longer there.

    Raises:
        ConflictError: a file changed since the plan was made.
    """
    for item in plan.edits:
        path = place.real(item.file)
        if not path.is_file() or path.read_bytes() != item.old:
            raise ConflictError(
                f"{item.file} changed since plan {plan.id} was made",
                expected="the bytes that the plan is about",
                hint=hints.patch(plan.target),
            )


def roll_back(draft: Journal, place: Place, error: BaseException) -> None:
    """Undo after `error`, which an operator is told about; an interruption is left to the caller.

    Raises:
        RolledBack: done, and the error is one that a machine or an install can cause.
        RecoveryPending: the undo failed too.
    """
    try:
        if draft.folder.is_dir():
            # If even the last step was done, an undo that ends half-way has to be found again.
            journal.enter(draft, Phase.APPLYING)
            undo(draft, place)
        journal.drop(draft)
    except (OSError, DdtreeError) as second:
        raise RecoveryPending(
            f"{_reason(error)}; and then, while undoing it: {_reason(second)}",
            expected="a disk that can be written to, to finish the undo",
            hint=hints.patch(place.named, "--status"),
        ) from error
    if isinstance(error, OSError | DdtreeError):
        raise RolledBack(
            f"{_reason(error)}; every byte is as it was before",
            expected="a change that goes through whole",
            hint=hints.patch(place.named, "--status"),
        ) from error


def _stage(plan: Plan, draft: Journal, place: Place) -> None:
    # What a crash left that no journal tells of any more; the names are this plan's alone.
    for left in [draft.staging(place), *(draft.scratch(place.real(e.file)) for e in draft.edits)]:
        disk.remove(left)
    for item, noted in zip(plan.edits, draft.edits, strict=True):
        disk.write_new(draft.scratch(place.real(item.file)), item.new, noted.attributes)
    like = Attributes.of(place.package / "__init__.py")
    folder = Attributes.of(place.package)
    staging = draft.staging(place)
    made: list[Path] = []
    for path, data in plan.installed.items():
        for parent in reversed((staging / path).parents):
            if staging in (parent, *parent.parents) and parent not in made:
                disk.make_folder(parent, folder)
                made.append(parent)
        disk.write_new(staging / path, data, like)
    for parent in [*made, place.site, *{place.real(item.file).parent for item in plan.edits}]:
        disk.sync_folder(parent)


def _activate(plan: Plan, draft: Journal, place: Place) -> None:
    for item in plan.edits:
        path = place.real(item.file)
        disk.rename(draft.scratch(path), path)
        for old in compiled(place, item.file):
            disk.remove(old)
    for top in TOPS:
        disk.rename(draft.staging(place) / top, place.site / top)
    disk.remove(draft.staging(place))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        names = " ".join(str(name) for name in (error.filename, error.filename2) if name)
        return f"{error.strerror or error}{f': {names}' if names else ''}"
    return error.found if isinstance(error, DdtreeError) else type(error).__name__
