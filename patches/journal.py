"""What was done to which install, and the original bytes: kept outside of everything it is about.

    <state>/installs/<real path of the package>/<version and RECORD>/journal.json, old/0, old/1 ...

The two folder names are hashes. A journal is there, whole and synced, before the first byte of an
install changes, and goes after the last one is back; its phase says which way to go after a crash.
"""

from __future__ import annotations

import enum
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..analyzers.errors import ConflictError, UsageError
from . import disk
from .disk import Attributes
from .place import Place
from .plan import Identity, Plan, sha256

_FORMAT = 3
# Those before did not say which site the runtime is in, and are read as well.
_READ = (2, _FORMAT)


class Phase(enum.StrEnum):
    """How far a change has come."""

    APPLYING = "applying"
    APPLIED = "applied"
    REVERTING = "reverting"


@dataclass(frozen=True, slots=True)
class Edited:
    """One file of vLLM: the hashes before and after, and what else it was.

    Args:
        link: where a symbolic link in its place led to; None for a regular file.
    """

    file: str
    old_sha256: str
    new_sha256: str
    mode: int
    uid: int
    gid: int
    xattrs: Mapping[str, str]
    link: str | None = None

    @property
    def attributes(self) -> Attributes:
        """The attributes that the file had and keeps."""
        values = {name: bytes.fromhex(value) for name, value in self.xattrs.items()}
        return Attributes(self.mode, self.uid, self.gid, values)


@dataclass(frozen=True, slots=True)
class Journal:
    """One change of one install.

    Args:
        installed: the hash of every file that was laid beside vLLM, by its path in the site.
        site: the real folder that these are in; empty where an older ddtree wrote it. Another site
            may lead to the same package by a link.
    """

    folder: Path
    phase: Phase
    plan_id: str
    package: str
    identity: Identity
    recipe: str
    recipe_digest: str
    edits: tuple[Edited, ...]
    installed: Mapping[str, str]
    site: str = ""

    def old(self, index: int) -> bytes:
        """The original bytes of the file at this index of `edits`.

        Raises:
            ConflictError: they are not there, or are no longer what they were.
        """
        path = self.folder / "old" / str(index)
        data = _read(path)
        if sha256(data) != self.edits[index].old_sha256:
            raise _damaged(path, "it is not what was kept")
        return data

    def scratch(self, file: Path) -> Path:
        """The temporary name beside a file that this change gives it."""
        return file.with_name(f".{file.name}.ddtree-{self.plan_id}")

    def beside(self, place: Place) -> Path:
        """The site that the runtime is in."""
        return Path(self.site) if self.site else place.site

    def staging(self, place: Place) -> Path:
        """The folder in the site where new files wait."""
        return self.beside(place) / f".ddtree-{self.plan_id}"


def state_root() -> Path:
    """`$DDTREE_STATE`, else `ddtree` in `$XDG_STATE_HOME`, else `~/.local/state/ddtree`.

    Raises:
        UsageError: none is set, and this user has no home folder.
    """
    named = os.environ.get("DDTREE_STATE")
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base).absolute() if base else _home() / ".local" / "state") / "ddtree"


def install_folder(place: Place) -> Path:
    """The folder of all journals about the package at one real path."""
    return state_root() / "installs" / sha256(os.fsencode(place.package))[:16]


def journal_folder(place: Place, identity: Identity) -> Path:
    """The folder of the journal about these bytes at this path."""
    key = sha256(f"{identity.version}\0{identity.record}".encode())[:16]
    return install_folder(place) / key


def journals(place: Place) -> list[Journal]:
    """Every journal about the package at this real path, whichever version it is about.

    Raises:
        ConflictError: one of them is damaged.
    """
    return [_load(folder) for folder in _folders(place) if not folder.suffix]


def drafted(plan: Plan, place: Place) -> Journal:
    """The journal of a plan that is about to be executed; nothing is written yet."""
    return Journal(
        journal_folder(place, plan.identity),
        Phase.APPLYING,
        plan.id,
        str(place.package),
        plan.identity,
        plan.recipe.name,
        plan.recipe.digest,
        tuple(noted(place, item.file, item.old_sha256, item.new_sha256) for item in plan.edits),
        {path: sha256(data) for path, data in plan.installed.items()},
        str(place.site),
    )


def noted(place: Place, file: str, old: str, new: str) -> Edited:
    """What has to be remembered about one file of an install."""
    path = place.real(file)
    like = Attributes.of(path)
    xattrs = {name: value.hex() for name, value in like.xattrs.items()}
    link = str(path.readlink()) if path.is_symlink() else None
    return Edited(file, old, new, like.mode, like.uid, like.gid, xattrs, link)


def begin(journal: Journal, originals: tuple[bytes, ...]) -> None:
    """Write the journal down, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    drop(journal)
    unfinished = journal.folder.with_suffix(".new")
    disk.make_folders(unfinished.parent)
    disk.make_folder(unfinished, Attributes.own(0o700))
    disk.make_folder(unfinished / "old", Attributes.own(0o700))
    for index, data in enumerate(originals):
        disk.write_new(unfinished / "old" / str(index), data, Attributes.own(0o600))
    disk.write_new(unfinished / "journal.json", _text(journal), Attributes.own(0o600))
    disk.sync_folder(unfinished / "old")
    disk.sync_folder(unfinished)
    disk.rename(unfinished, journal.folder)


def enter(journal: Journal, phase: Phase) -> Journal:
    """Write down that the change is in another phase.

    Raises:
        OSError: it cannot be written; then the phase is the old one.
    """
    changed = replace(journal, phase=phase)
    scratch = _entry(journal.folder)
    disk.remove(scratch)
    disk.write_new(scratch, _text(changed), Attributes.own(0o600))
    disk.rename(scratch, journal.folder / "journal.json")
    return changed


def written(journal: Journal) -> Phase | None:
    """The phase that the disk holds, whatever became of an `enter`; None without a journal.

    Raises:
        ConflictError: it cannot be read.
    """
    return _load(journal.folder).phase if journal.folder.is_dir() else None


def drop(journal: Journal) -> None:
    """Forget a change that is undone, or whose install is gone.

    Raises:
        OSError: it cannot be removed.
    """
    if journal.folder.is_dir():
        gone = journal.folder.with_suffix(".gone")
        disk.remove(gone)
        disk.rename(journal.folder, gone)
    sweep(journal.folder.parent)


def sweep(folder: Path) -> None:
    """Remove what an interrupted `begin` or `drop` left in the folder of an install.

    Raises:
        OSError: it cannot be removed.
    """
    for left in leftovers(folder):
        disk.remove(left)
    disk.remove_empty(folder)


def leftovers(folder: Path) -> list[Path]:
    """What an interrupted `begin` or `drop` left of the folder of an install."""
    found = _listed(folder)
    if not found and folder.is_dir():
        return [folder]
    left = [path for path in found if path.suffix in (".new", ".gone")]
    # Of an entry that never came to be.
    return left + [path for path in map(_entry, found) if path.is_file()]


def _entry(folder: Path) -> Path:
    """Where the next entry of a journal is written before it counts."""
    return folder / "journal.json.new"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise UsageError(
            f"user {os.geteuid()} has no home folder to keep the journal in",
            expected="$DDTREE_STATE, $XDG_STATE_HOME or $HOME in the environment",
            hint="export DDTREE_STATE=/var/lib/ddtree",
        ) from None


def _folders(place: Place) -> Iterator[Path]:
    yield from (path for path in _listed(install_folder(place)) if path.is_dir())


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _text(journal: Journal) -> bytes:
    body = {"format": _FORMAT} | asdict(journal)
    del body["folder"]
    return (json.dumps(body | {"digest": _digest(body)}, indent=1) + "\n").encode()


def _digest(body: Mapping[str, Any]) -> str:
    # A journal says which files are written to, so half of one or an edited one is none.
    return sha256(json.dumps(body, sort_keys=True).encode())


def _load(folder: Path) -> Journal:
    path = folder / "journal.json"
    try:
        body: dict[str, Any] = json.loads(_read(path))
        if not isinstance(body, dict) or not isinstance(body.get("format"), int):
            raise _damaged(path, "it cannot be understood")
        if body["format"] not in _READ:
            raise _damaged(path, "another version of ddtree wrote it")
        if body.pop("digest", None) != _digest(body):
            raise _damaged(path, "it is not what was written")
        del body["format"]
        body["phase"] = Phase(body["phase"])
        body["identity"] = Identity(**body["identity"])
        body["edits"] = tuple(Edited(**item) for item in body["edits"])
        return Journal(folder=folder, **body)
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, "it cannot be understood") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path, f"it cannot be read: {error.strerror}") from error


def _damaged(path: Path, reason: str) -> ConflictError:
    folder = path.parent
    return ConflictError(
        f"{path}: {reason}",
        expected="the journal of an earlier ddtree patch; without one, RECORD decides",
        hint=f"mv {shlex.quote(str(folder))} {shlex.quote(f'{folder}.damaged')}",
    )
