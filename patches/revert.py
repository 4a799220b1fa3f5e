"""Give every byte back."""

from __future__ import annotations

import os

from ..analyzers.errors import ConflictError, DdtreeError
from ..analyzers.targets.source import Target
from . import hints, journal
from .distribution import PACKAGE
from .errors import RecoveryPending
from .journal import Journal, Phase
from .lock import locked
from .marks import unedited
from .place import Place
from .plan import foreign_edits, identity_of, sha256
from .preflight import refuse_running, writable
from .repair import reinstall
from .status import FileState, State, Status, journal_of
from .undo import content, undo


def revert(target: Target, place: Place, status: Status, *, force: bool = False) -> str:
    """Undo the patch of an install; what was done, in a sentence.

    Where another vLLM was installed over a patched one, only the runtime and the journal go.

    Raises:
        ConflictError: nothing was written: a file changed since, or processes run from here.
        RecoveryPending: it failed half-way; the next command goes on.
    """
    with locked(place):
        _refuse_changes(status, place)
        refuse_running(place, force=force)
        if status.state == State.LOST:
            for found in journal.journals(place):
                _undone(found, place, restore=False)
            return "The runtime and the journal of the lost patch are removed; vLLM is left alone."
        found = journal_of(place, identity_of(target)) or _reconstructed(target, place, status)
        _undone(found, place, restore=True)
    return f"{len(found.edits)} files are as they were before, byte for byte."


def _refuse_changes(status: Status, place: Place) -> None:
    if status.state == State.LOST:
        return
    wrong = (FileState.CHANGED, FileState.MISSING)
    changed = [file for file, state in status.files.items() if state in wrong]
    if status.state != State.UNTRACKED:
        # A runtime that is gone is half of what a revert wants.
        changed += [path for path in status.runtime if os.path.lexists(place.site / path)]
    if changed:
        raise ConflictError(
            f"changed since ddtree wrote it: {', '.join(changed)}",
            expected="the files as ddtree left them, or as they were before; after this command, "
            "--revert once more takes the rest away",
            hint=status.repair[0] if status.repair else hints.patch(place.named, "--status"),
        )


def _refuse_unwritable(found: Journal, place: Place) -> None:
    folders = [place.site, *(place.real(item.file).parent for item in found.edits)]
    obstacles = list(writable([folder for folder in folders if folder.exists()]))
    if obstacles:
        raise ConflictError(
            "; ".join(obstacles),
            expected="an install that can be changed",
            hint=hints.patch(place.named, "--status"),
        )


def _undone(found: Journal, place: Place, *, restore: bool) -> None:
    _refuse_unwritable(found, place)
    try:
        reverting = journal.enter(found, Phase.REVERTING)
        undo(reverting, place, restore=restore)
        journal.drop(reverting)
    except (OSError, DdtreeError) as error:
        raise RecoveryPending(
            f"the revert stopped half-way: {error}",
            expected="a disk that can be written to, to finish it; vLLM runs unpatched meanwhile",
            hint=hints.patch(place.named, "--status"),
        ) from error


def _reconstructed(target: Target, place: Place, status: Status) -> Journal:
    """A journal for an install that another user or a bundle patched: the edits are their own undo.

    Raises:
        ConflictError: RECORD does not confirm that the files without hooks are the originals.
    """
    data = {
        file: target.source.read(file)
        for file, state in status.files.items()
        if state == FileState.PATCHED
    }
    old = {file: unedited(content) for file, content in data.items()}
    unknown = [file for file in old if not _recorded(target, file)]
    unknown += foreign_edits(old, target.record)
    if unknown:
        raise ConflictError(
            f"RECORD does not say what these were before: {', '.join(unknown)}",
            expected="files whose original bytes are known",
            hint=reinstall(target, place.python),
        )
    found = Journal(
        journal.journal_folder(place, identity_of(target)),
        Phase.REVERTING,
        sha256("".join(map(sha256, data.values())).encode())[:12],
        str(place.package),
        identity_of(target),
        "unknown",
        "",
        tuple(journal.noted(place, file, sha256(old[file]), sha256(data[file])) for file in old),
        _beside(place),
    )
    journal.begin(found, tuple(old.values()))
    return found


def _recorded(target: Target, file: str) -> bool:
    entry = target.record.entries.get(file) if target.record else None
    return entry is not None and entry.digest is not None


def _beside(place: Place) -> dict[str, str]:
    tops = [place.site / PACKAGE, *place.site.glob(f"{PACKAGE}-*.dist-info")]
    paths = [path for top in tops for path in top.rglob("*") if path.is_file()]
    return {path.relative_to(place.site).as_posix(): content(path) or "" for path in paths}
