"""Take a change back: the same steps after a failure, after a crash and for a revert.

The runtime goes first, since without it every hook does nothing. Each step can be repeated, so
that an undo which is interrupted is completed by running it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..analyzers.errors import ConflictError
from . import disk, hints
from .bytecode import compiled
from .distribution import PACKAGE
from .journal import Edited, Journal
from .marks import unedited
from .place import Place
from .plan import sha256


def undo(journal: Journal, place: Place, *, restore: bool = True) -> None:
    """Put the original files back and remove what was laid beside them; the journal stays.

    Args:
        restore: False where another vLLM was installed since, whose files are none of ours.

    Raises:
        OSError: a disk failed; the next undo goes on from there.
        ConflictError: a file is neither what it was nor what it was made; it is left alone.
    """
    trash = _set_aside(journal, place)
    changed = [
        item.file
        for index, item in enumerate(journal.edits)
        if restore and not _restored(journal, index, place)
    ]
    for item in journal.edits:
        disk.remove(journal.scratch(place.real(item.file)))
    for folder in [*trash, journal.staging(place)]:
        disk.remove(folder)
    if changed:
        raise ConflictError(
            f"changed since ddtree edited it, and left alone: {', '.join(changed)}",
            expected="the files as ddtree left them",
            hint=hints.patch(place.named, "--status"),
        )


def content(path: Path) -> str | None:
    """The hash of a file, links followed; None if it is not there."""
    try:
        return sha256(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _set_aside(journal: Journal, place: Place) -> list[Path]:
    """Move the runtime out of the way in one step, so that imports stop finding it at once."""
    tops = {path.partition("/")[0] for path in journal.installed}
    trash = []
    # The package is the one that matters, so it is the first to go.
    for top in sorted(tops, key=lambda name: name != PACKAGE):
        aside = place.site / f".ddtree-{journal.plan_id}.{top}"
        path = place.site / top
        if _is_ours(journal, path, top):
            disk.remove(aside)
            disk.rename(path, aside)
        trash.append(aside)
    return trash


def _is_ours(journal: Journal, path: Path, top: str) -> bool:
    if not path.is_dir():
        return False
    names = [name for name in journal.installed if name.startswith(f"{top}/")]
    return any(content(path.parent / name) == journal.installed[name] for name in names)


def _restored(journal: Journal, index: int, place: Place) -> bool:
    """Put one file back; False if it is neither the old nor the new one."""
    item = journal.edits[index]
    path = place.real(item.file)
    found = content(path)
    if found == item.new_sha256:
        _put_back(journal, item, path, _original(journal, index, path))
    elif found != item.old_sha256:
        return False
    # Also where the file is back already: an earlier undo may have ended in between.
    for old in compiled(place, item.file):
        disk.remove(old)
    return True


def _original(journal: Journal, index: int, path: Path) -> bytes:
    try:
        return journal.old(index)
    except ConflictError:
        # The edit is its own undo; the hash says whether that gives the same bytes.
        data = unedited(path.read_bytes())
        if sha256(data) != journal.edits[index].old_sha256:
            raise
        return data


def _put_back(journal: Journal, item: Edited, path: Path, data: bytes) -> None:
    scratch = journal.scratch(path)
    disk.remove(scratch)
    if item.link is None:
        disk.write_new(scratch, data, item.attributes)
    else:
        disk.make_link(scratch, item.link)
    disk.rename(scratch, path)


def runtime_changes(installed: Mapping[str, str], place: Place) -> tuple[str, ...]:
    """What lies beside vLLM and is not what was put there: changed, missing or added files.

    Args:
        installed: the hash of every file that was, by its path relative to the site.
    """
    wrong = [path for path, digest in installed.items() if content(place.site / path) != digest]
    package = place.site / PACKAGE
    added = [
        path.relative_to(place.site).as_posix()
        for path in package.rglob("*")
        if not path.is_dir() and path.suffix != ".pyc"
    ]
    return tuple(sorted({*wrong, *added} - (set(installed) - set(wrong))))
