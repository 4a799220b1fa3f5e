"""Give every byte back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from ..analyzers.errors import ConflictError, DdtreeError
from ..analyzers.targets.source import Target
from . import hints, journal
from .distribution import found_beside, way_of
from .errors import RecoveryPending, RolledBack
from .journal import Edited, Journal, Phase
from .leftovers import sweep
from .lock import locked
from .marks import MARK, unedited
from .place import Place
from .plan import Identity, identity_of, sha256
from .preflight import refuse_irreversible
from .repair import way_back
from .status import FileState, State, Status, journal_of
from .undo import Staged, activate, forget, interruption, live, readable, stage, stuck, unstage
from .untracked import unconfirmed
from .way import Way

# The originals, in the order of a journal's edits.
_Originals = tuple[bytes, ...]


def revert(
    target: Target,
    place: Place,
    status: Status,
    *,
    force: bool = False,
    local_edits: bool = False,
    known: Mapping[str, str] | None = None,
) -> str:
    """Undo the patch of an install; what was done, in a sentence.

    Where another vLLM was installed over a patched one, only the runtime and the journal go.

    Args:
        local_edits: take the hooks out of files that somebody changed, which keep the change, and
            of files whose originals nobody knows.
        known: hashes of originals by path, for where neither a journal nor RECORD knows them.

    Raises:
        ConflictError: nothing was written: a file changed since, or something stands in the way.
        RolledBack: it failed before anything changed; the patch is live.
        RecoveryPending: it failed half-way; the next command goes on.
        KeyboardInterrupt: interrupted; the message says how things stand.
    """
    with locked(place):
        if status.state in (State.LOST, State.REMNANTS):
            return remove_remnants(place, status.leftovers, force=force)
        _refuse_changes(status, place, local_edits)
        tracked = journal_of(place, identity_of(target))
        found, originals = (
            (tracked, ())
            if tracked
            else _reconstructed(target, place, status, local_edits, known or {})
        )
        seen = refuse_irreversible(found, place, status.leftovers, force=force)
        staged = _staged(found, originals, place)
        _finish(found, staged, place)
        _swept(place, status.leftovers)
    return " ".join([*_sentences(found, staged, place), *seen])


def remove_remnants(place: Place, left: tuple[str, ...], *, force: bool = False) -> str:
    """Remove what is left of patches whose vLLM is gone or was replaced; what was done.

    Args:
        left: paths in the site that `leftovers` names.

    Raises:
        ConflictError: nothing was written: something stands in the way.
        RecoveryPending: it failed half-way; the next command goes on.
    """
    found = journal.journals(place)
    seen: tuple[str, ...] = ()
    for one in found or [_runtime(place)]:
        seen = refuse_irreversible(replace(one, edits=()), place, left, force=force)
    try:
        forget(found, place)
        rest = _runtime(place)
        if rest.installed:
            # No journal tells of it, or somebody changed all of it.
            journal.begin(rest, ())
            forget([rest], place)
    except (OSError, DdtreeError) as error:
        raise _pending("what is left of the patch cannot be removed", error, place) from error
    _swept(place, left)
    return " ".join(["What was left of the patch is removed; vLLM is left alone.", *seen])


def _runtime(place: Place) -> Journal:
    """What a journal would say of the runtime that is there."""
    return _unjournaled(place, Identity("", ""), (), _beside(place))


def _refuse_changes(status: Status, place: Place, local_edits: bool) -> None:
    # What a plug-in only assigned to is nothing to give back.
    kept = local_edits or status.way == Way.PLUGIN
    wrong = () if kept else (FileState.CHANGED, FileState.MISSING)
    changed = [file for file, state in status.files.items() if state in wrong]
    if status.state != State.UNTRACKED:
        # A runtime that is gone, or that cannot be read, is half of what a revert wants.
        beside = set(status.runtime) - set(status.unreadable)
        changed += [path for path in sorted(beside) if os.path.lexists(place.site / path)]
    if changed:
        raise ConflictError(
            f"changed since ddtree wrote it: {', '.join(changed)}",
            expected="the files as ddtree left them, or as they were before",
            hint=status.repair[0] if status.repair else hints.patch(place.named, "--status"),
        )


def _staged(found: Journal, originals: _Originals, place: Place) -> Staged:
    """Begin a revert, and write the originals where nothing sees them yet."""
    was = journal.written(found)
    try:
        if was is None:
            journal.begin(found, originals)
        else:
            journal.enter(found, Phase.REVERTING)
        unstage(found, place)
        staged = stage(found, place)
        if staged.stuck:
            raise stuck(staged, place)
    except BaseException as error:
        _take_back(found, was, place, error)
        raise
    return staged


def _take_back(found: Journal, was: Phase | None, place: Place, error: BaseException) -> None:
    """Leave no trace of a revert that did not come to change anything."""
    reason = f"the revert did not begin: {error}"
    try:
        unstage(found, place)
        if was is None:
            journal.drop(found)
        elif journal.written(found) != was:
            journal.enter(found, was)
    except (OSError, DdtreeError) as second:
        raise _pending(f"{reason}; and then", second, place, found) from error
    how = f"nothing was changed, and {live(found, place)}"
    if isinstance(error, OSError | DdtreeError):
        raise RolledBack(
            f"{reason}; {how}",
            expected="a revert that goes through whole",
            hint=hints.patch(place.named, "--status"),
        ) from error
    if isinstance(error, KeyboardInterrupt):
        raise KeyboardInterrupt(how) from error


def _finish(found: Journal, staged: Staged, place: Place) -> None:
    try:
        activate(found, place, staged)
        journal.drop(found)
    except KeyboardInterrupt as error:
        raise interruption(found, place) from error
    except (OSError, DdtreeError) as error:
        raise _pending("the revert stopped half-way", error, place, found) from error


def _swept(place: Place, left: tuple[str, ...]) -> None:
    try:
        sweep(place, left)
    except OSError as error:
        raise _pending("what a change left cannot be removed", error, place) from error


def _pending(
    what: str, error: Exception, place: Place, found: Journal | None = None
) -> RecoveryPending:
    return RecoveryPending(
        f"{what}: {error}" + (f"; {live(found, place)}" if found else ""),
        expected="a disk that can be written to, to finish it",
        hint=hints.patch(place.named, "--status"),
    )


def _sentences(found: Journal, staged: Staged, place: Place) -> list[str]:
    if way_of(found.installed) == Way.PLUGIN:
        return ["The plug-in and the runtime are removed; no file of vLLM had been changed."]
    kept = set(staged.changed)
    back = len([item for item in found.edits if item.file not in kept])
    said = [f"{back} files are as they were before, byte for byte."]
    if kept:
        said.append(
            f"Without hooks, and otherwise as somebody left them: {', '.join(sorted(kept))}."
        )
    if found.beside(place) != place.site:
        said.append(f"The runtime in {found.beside(place)} is removed.")
    return said


def _reconstructed(
    target: Target, place: Place, status: Status, local_edits: bool, known: Mapping[str, str]
) -> tuple[Journal, _Originals]:
    """A journal for an install that another user or a bundle patched: the edits are their own undo.

    Raises:
        ConflictError: nothing confirms that the files without hooks are the originals.
    """
    data = {
        file: target.source.read(file) for file in status.files if file in target.source.files()
    }
    data = {file: content for file, content in data.items() if MARK in content}
    old = {file: unedited(content) for file, content in data.items()}
    unknown = [file for file in unconfirmed(target, data) if known.get(file) != sha256(old[file])]
    if unknown and not local_edits:
        raise ConflictError(
            f"nothing says what these were before: {', '.join(unknown)}",
            expected=f"files whose original bytes are known, or {hints.LOCAL_EDITS}: the hooks are "
            "taken out, and all else stays as it is",
            hint=way_back(target, place, unknown)[0],
        )
    edits = tuple(journal.noted(place, file, sha256(old[file]), sha256(data[file])) for file in old)
    return _unjournaled(place, identity_of(target), edits, _beside(place)), tuple(old.values())


def _unjournaled(
    place: Place, identity: Identity, edits: tuple[Edited, ...], installed: Mapping[str, str]
) -> Journal:
    """What a journal would say of a change that none tells of; nothing is written."""
    key = "".join(item.new_sha256 for item in edits) + "".join(installed.values())
    return Journal(
        journal.journal_folder(place, identity),
        Phase.REVERTING,
        sha256(key.encode())[:12],
        str(place.package),
        identity,
        "unknown",
        "",
        edits,
        installed,
        str(place.site),
    )


def _beside(place: Place) -> dict[str, str]:
    tops = found_beside(place.site)
    paths = [path for top in tops for path in (top, *top.rglob("*")) if path.is_file()]
    return {path.relative_to(place.site).as_posix(): readable(path) or "" for path in paths}
