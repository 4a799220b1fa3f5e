"""Execute a plan: all of it, or nothing.

The order is what makes that true. The journal with the original bytes is durable before the first
byte of the install changes. All new content lands under temporary names. The edited files are then
renamed into place, each harmless without the runtime. The last rename brings the runtime's package
and with it everything to life. Whatever fails before the journal says `applied` is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..analyzers.errors import ConflictError, DdtreeError
from ..analyzers.result import Install
from . import disk, hints, journal
from .bytecode import compiled
from .check import check, refuse_broken
from .disk import Attributes
from .distribution import tops
from .errors import RecoveryPending, RolledBack
from .journal import Journal, Phase
from .leftovers import leftovers, sweep
from .lock import locked
from .place import Place
from .plan import Plan
from .preflight import preflight
from .undo import forget, interruption, live, undo

_LEFT = ", but for what was left of the lost patch, which is gone"


def apply(
    plan: Plan,
    install: Install,
    place: Place,
    *,
    force: bool = False,
    imports: bool = False,
) -> tuple[str, ...]:
    """Change the install as planned; sentences about what could not be checked.

    Of a patch that was lost, and of a change that was killed, what is left goes first, once nothing
    stands in the way any more.

    Args:
        imports: import the edited modules, before and after; most of them need torch.

    Raises:
        ConflictError: nothing was written: an obstacle, or a byte changed since the plan.
        RolledBack: it failed, and all is as before.
        RecoveryPending: it failed, and so did the undo; the next command tries again.
    """
    with locked(place):
        lost = journal.journals(place)
        tops = {path.partition("/")[0] for found in lost for path in found.installed}
        seen = preflight(plan, install, place, force=force, lost=tops)
        refuse_stale(plan, place)
        if imports:
            refuse_broken(plan, place)
        _clear(lost, place)
        draft = journal.drafted(plan, place)
        try:
            journal.begin(draft, tuple(item.old for item in plan.edits))
            _stage(plan, draft, place)
            _activate(plan, draft, place)
            checked = check(plan, draft, place, imports=imports)
            return *seen, *checked, *_completed(draft)
        except BaseException as error:
            roll_back(draft, place, error, _LEFT if lost else "")
            raise


def _clear(lost: Sequence[Journal], place: Place) -> None:
    """Remove what is left of patches that were lost and of changes that were killed.

    Raises:
        RecoveryPending: it cannot be removed.
    """
    try:
        forget(lost, place)
        sweep(place, leftovers(place, lost))
    except (OSError, DdtreeError) as error:
        raise RecoveryPending(
            f"what an earlier patch left cannot be removed: {_reason(error)}; vLLM is as it was",
            expected="a disk that can be written to",
            hint=hints.patch(place.named, "--status"),
        ) from error


def refuse_stale(plan: Plan, place: Place) -> None:
    """Refuse a plan for bytes that are no longer there.

    Raises:
        ConflictError: a file changed since the plan was made.
    """
    for file, data in plan.sources.items():
        path = place.real(file)
        if not path.is_file() or path.read_bytes() != data:
            raise ConflictError(
                f"{file} changed since plan {plan.id} was made",
                expected="the bytes that the plan is about",
                hint=hints.patch(plan.target, *plan.options),
            )


def roll_back(draft: Journal, place: Place, error: BaseException, left: str = "") -> None:
    """Undo after `error`, which an operator is told about.

    Args:
        left: what is not as it was before all the same.

    Raises:
        RolledBack: done, and the error is one that a machine or an install can cause.
        RecoveryPending: the undo failed too.
        KeyboardInterrupt: that was the error, or interrupted it; the message says how things stand.
    """
    before = f"every byte is as it was before{left}"
    status = hints.patch(place.named, "--status")
    try:
        if journal.written(draft) == Phase.APPLIED:
            # An undo that ends half-way has to be found again.
            journal.enter(draft, Phase.APPLYING)
        if draft.folder.is_dir():
            undo(draft, place)
        journal.drop(draft)
    except KeyboardInterrupt:
        raise interruption(draft, place) from error
    except (OSError, DdtreeError) as second:
        raise RecoveryPending(
            f"{_reason(error)}; and then, while undoing it: {_reason(second)}; "
            f"{live(draft, place)}",
            expected="a disk that can be written to, to finish the undo",
            hint=status,
        ) from error
    if isinstance(error, OSError | DdtreeError):
        raise RolledBack(
            f"{_reason(error)}; {before}",
            expected="a change that goes through whole",
            hint=status,
        ) from error
    if isinstance(error, KeyboardInterrupt):
        raise KeyboardInterrupt(before) from error


def _completed(draft: Journal) -> tuple[str, ...]:
    """Write down that all is done; what the disk would not confirm, in a sentence."""
    try:
        journal.enter(draft, Phase.APPLIED)
    except OSError as error:
        if journal.written(draft) != Phase.APPLIED:
            raise
        return (
            f"The patch is whole and live, but the disk did not confirm it ({_reason(error)}): "
            "after a power failure, the next command may take it back.",
        )
    return ()


def _stage(plan: Plan, draft: Journal, place: Place) -> None:
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
    for top in tops(plan.installed):
        disk.rename(draft.staging(place) / top, place.site / top)
    disk.remove(draft.staging(place))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        names = " ".join(str(name) for name in (error.filename, error.filename2) if name)
        return f"{error.strerror or error}{f': {names}' if names else ''}"
    return error.found if isinstance(error, DdtreeError) else type(error).__name__
