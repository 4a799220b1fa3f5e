"""Take a change back: the same steps after a failure, after a crash and for a revert.

The originals are written under temporary names first, so that whatever stands in the way of them is
met while nothing has changed. Then the runtime goes, since without it every hook does nothing, and
the originals are renamed into place. Each step can be repeated, so that an undo which is
interrupted is completed by running it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..analyzers.errors import ConflictError
from . import disk, hints
from .bytecode import compiled
from .disk import Attributes
from .distribution import PACKAGE, PLUGIN, tops, way_of
from .journal import Edited, Journal, Phase, drop, enter
from .marks import MARK, unedited
from .place import Place
from .plan import sha256
from .way import Way


@dataclass(frozen=True, slots=True)
class Staged:
    """Files that wait under temporary names to be put back.

    Attributes:
        files: the paths that they will have.
        changed: files that somebody changed meanwhile: they lose their hooks and keep the change.
        stuck: files whose hooks cannot be told from somebody's change; they are left alone.
    """

    files: tuple[Path, ...] = ()
    changed: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()


def undo(journal: Journal, place: Place, *, restore: bool = True) -> tuple[str, ...]:
    """Put the original files back and remove what was laid beside them; the journal stays.

    Args:
        restore: False where another vLLM was installed since, whose files are none of ours.

    Returns:
        The files that somebody changed meanwhile; they lost their hooks alone.

    Raises:
        OSError: a disk failed; the next undo goes on from there.
        ConflictError: the hooks of a file that was changed cannot be told from the change; the
            others are back.
    """
    unstage(journal, place)
    staged = stage(journal, place) if restore else Staged()
    activate(journal, place, staged)
    if staged.stuck:
        raise stuck(staged, place)
    return staged.changed


def stage(journal: Journal, place: Place) -> Staged:
    """Write the files that are to be put back under temporary names; nothing else changes.

    Raises:
        OSError: a disk failed, or a file may not be given its owner.
        ConflictError: an original is gone.
    """
    files: list[Path] = []
    changed: list[str] = []
    wrong: list[str] = []
    for index, item in enumerate(journal.edits):
        path = place.real(item.file)
        found = content(path)
        if found == item.new_sha256:
            _write(journal, item, path, _original(journal, index, path))
            files.append(path)
        elif found is None:
            changed.append(item.file)
        elif found != item.old_sha256:
            data = path.read_bytes()
            rest = unedited(data)
            (wrong if MARK in rest else changed).append(item.file)
            if rest != data and MARK not in rest:
                disk.write_new(journal.scratch(path), rest, Attributes.of(path))
                files.append(path)
    return Staged(tuple(files), tuple(changed), tuple(wrong))


def unstage(journal: Journal, place: Place) -> None:
    """Remove what lies under temporary names, from `stage` or from an apply that was killed."""
    for item in journal.edits:
        disk.remove(journal.scratch(place.real(item.file)))


def activate(journal: Journal, place: Place, staged: Staged) -> None:
    """Let the runtime go, rename what was staged into place, and sweep up."""
    trash = _set_aside(journal, place)
    for path in staged.files:
        disk.rename(journal.scratch(path), path)
    for item in journal.edits:
        # Also where the file is back already: an earlier undo may have ended in between.
        for old in compiled(place, item.file):
            disk.remove(old)
    for folder in [*trash, journal.staging(place)]:
        disk.remove(folder)


def stuck(staged: Staged, place: Place) -> ConflictError:
    """The refusal of files whose hooks cannot be taken out."""
    return ConflictError(
        f"changed since ddtree edited it, and left alone: {', '.join(staged.stuck)}",
        expected="the files as ddtree left them",
        hint=hints.patch(place.named, "--status"),
    )


def forget(lost: Iterable[Journal], place: Place) -> None:
    """Remove the runtime and the journals of patches over which another vLLM was installed.

    Raises:
        OSError: it cannot be removed; the next command tries again.
    """
    for found in lost:
        reverting = enter(found, Phase.REVERTING)
        undo(reverting, place, restore=False)
        drop(reverting)


def content(path: Path) -> str | None:
    """The hash of a file, links followed; None if it is not there."""
    try:
        return sha256(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _set_aside(journal: Journal, place: Place) -> list[Path]:
    """Move the runtime out of the way in one step, so that imports stop finding it at once."""
    site = journal.beside(place)
    trash = []
    # What brought it to life is the first to go.
    for top in reversed(tops(journal.installed)):
        aside = site / f".ddtree-{journal.plan_id}.{top}"
        path = site / top
        if _is_ours(journal, path, top):
            disk.remove(aside)
            disk.rename(path, aside)
        trash.append(aside)
    return trash


def _is_ours(journal: Journal, path: Path, top: str) -> bool:
    if not path.is_dir():
        return top in journal.installed and readable(path) == journal.installed[top]
    names = [name for name in journal.installed if name.startswith(f"{top}/")]
    return any(readable(path.parent / name) == journal.installed[name] for name in names)


def _original(journal: Journal, index: int, path: Path) -> bytes:
    try:
        return journal.old(index)
    except ConflictError:
        # The edit is its own undo; the hash says whether that gives the same bytes.
        data = unedited(path.read_bytes())
        if sha256(data) != journal.edits[index].old_sha256:
            raise
        return data


def _write(journal: Journal, item: Edited, path: Path, data: bytes) -> None:
    scratch = journal.scratch(path)
    if item.link is None:
        disk.write_new(scratch, data, item.attributes)
    else:
        disk.make_link(scratch, item.link)


def live(journal: Journal, place: Place) -> str:
    """What vLLM runs as right now, for a sentence about a change that did not go through."""
    if way_of(journal.installed) == Way.PLUGIN:
        site, names = journal.beside(place), tops(journal.installed)
        loaded = all(os.path.lexists(site / name) for name in names)
        return "the patch is whole and live" if loaded else "vLLM runs unpatched"
    try:
        hashes = [content(place.real(item.file)) for item in journal.edits]
        there = (journal.beside(place) / PACKAGE / "hooks.py").is_file()
    except OSError as error:
        return f"what is live cannot be read ({error.strerror})"
    edited = [found == item.new_sha256 for found, item in zip(hashes, journal.edits, strict=True)]
    if there and all(edited):
        return "the patch is whole and live"
    if any(edited):
        return "vLLM runs as if it were not patched, as hooks without the runtime do nothing"
    return "vLLM runs unpatched"


def interruption(journal: Journal, place: Place) -> KeyboardInterrupt:
    """What Ctrl-C in the middle of an undo says: how things stand, and what is left to do."""
    command = hints.patch(place.named, "--status")
    return KeyboardInterrupt(f"{live(journal, place)}; to take the rest back, run: {command}")


def runtime_changes(installed: Mapping[str, str], site: Path) -> tuple[str, ...]:
    """What lies beside vLLM and is not what was put there: changed, missing or added files.

    Args:
        installed: the hash of every file that was, by its path relative to the site.
    """
    wrong = [path for path, digest in installed.items() if readable(site / path) != digest]
    added = [
        path.relative_to(site).as_posix()
        for package in (PACKAGE, PLUGIN)
        for path in _files(site / package)
        if path.suffix != ".pyc"
    ]
    return tuple(sorted({*wrong, *added} - (set(installed) - set(wrong))))


def readable(path: Path) -> str | None:
    """The hash of a file; None if it is not there, or this user may not read it."""
    try:
        return content(path)
    except PermissionError:
        return None


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if not path.is_dir())
