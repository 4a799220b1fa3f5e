"""What state an install is in, judged by its bytes and by the journal about it."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.install.check import RecordCheck
from ..analyzers.targets.source import Target
from . import assigned, hints, journal, untracked
from .access import is_hidden
from .distribution import PACKAGE, PLUGIN, tops, way_of
from .journal import Journal
from .leftovers import leftovers
from .marks import MARK, unedited
from .place import Place
from .plan import Identity, foreign_edits, identity_of, sha256
from .recipe import all_recipes, choose, hooked_files
from .repair import removal, way_back
from .undo import content, runtime_changes
from .way import Way

# Larger files are compared by size: hashing compiled libraries takes longer than all the rest.
_HASHED = 4 << 20
# Names in a sentence; all of them are listed below it.
_NAMED = 3


class State(enum.StrEnum):
    """Whether an install is patched."""

    # As its installer left it, as far as ddtree is concerned.
    STOCK = "stock"
    APPLIED = "applied"
    # Applied once, and something of it was changed or removed since.
    DAMAGED = "damaged"
    # Applied once, and another vLLM was installed over it since.
    LOST = "lost"
    # Its files hold hooks, and no journal here says how they got there.
    UNTRACKED = "untracked"
    # Not patched, or gone altogether, and something of a patch lies there still.
    REMNANTS = "remnants"


class FileState(enum.StrEnum):
    """Whether one of the edited files is as ddtree left it."""

    STOCK = "stock"
    PATCHED = "patched"
    # Untouched, and a plug-in assigns to its functions.
    HOOKED = "hooked"
    CHANGED = "changed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Status:
    """The state of one install.

    Args:
        files: the files that a recipe hooks into, with their states.
        runtime: files beside vLLM that are not as they were put there, or, where nobody knows how
            they got there, not as this ddtree lays them; a folder that is gone stands for all of
            its files.
        unreadable: those of them that a user who can read vLLM cannot read.
        leftovers: files that a change left which was killed, and which no journal tells of.
        foreign: files of the package that somebody else changed; hooks may have been put into them.
        outdated: whether another ddtree, with another recipe or runtime, applied the patch.
        repair: commands that lead out of a state that is neither stock nor patched, in their order.
        notes: what was recovered or could not be checked.
        named: options that belong to the name of the target, where that is another machine.
        way: how the hooks got into vLLM, where they did.
    """

    target: str
    location: str
    version: str | None
    state: State
    sentence: str
    plan_id: str | None
    recipe: str | None
    files: Mapping[str, FileState]
    runtime: tuple[str, ...]
    foreign: tuple[str, ...]
    outdated: bool = False
    notes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    way: Way = Way.EDITS

    @property
    def steady(self) -> bool:
        """Whether it cannot be what another ddtree, at work right now, makes it look like."""
        odd = {FileState.CHANGED, FileState.MISSING} & set(self.files.values())
        stock = self.state == State.STOCK and not odd and not set(self.foreign) & set(self.files)
        return (stock or self.state == State.APPLIED) and not self.leftovers

    @property
    def whole(self) -> bool:
        """Whether it is patched, and every file is as a ddtree made it: its own journal's, or,
        without a journal, this one.
        """
        if self.state == State.UNTRACKED:
            return _as_left(self.files) and not (self.runtime or self.outdated)
        return self.state == State.APPLIED


def status_of(
    target: Target, place: Place, installed: Mapping[str, bytes], notes: tuple[str, ...] = ()
) -> Status:
    """The status of an install; nothing is written.

    Args:
        installed: what this ddtree would lay beside vLLM.
        notes: what a recovery did just before.

    Raises:
        ConflictError: a journal is damaged.
    """
    identity = identity_of(target)
    found = journal_of(place, identity)
    site = found.beside(place) if found else place.site
    plugin = assigned.is_there(site) if found is None else way_of(found.installed) == Way.PLUGIN
    if plugin:
        installed = assigned.expected(target, site, installed)
    changes = assigned.changes(place, site) if plugin else {}
    files = _hooked(changes) if plugin else _files(target, place, found)
    hidden = _unreadable(found, place, site)
    runtime = _folded(_runtime(found, files, site, installed) + hidden, site)
    left = leftovers(place, [found] if found else ())
    state, sentence = _judged(found, identity, files, runtime, hidden, place)
    if plugin and found is not None and state != State.LOST and site == place.site:
        state, sentence = _judged_plugin(found, changes, runtime)
    if state == State.STOCK and left:
        state, sentence = State.REMNANTS, untracked.LEFT
    outdated = state == State.APPLIED and found is not None and _outdated(found, installed)
    if state == State.UNTRACKED and _as_left(files):
        outdated = not plugin and not untracked.edited_as_today(target)
        sentence = untracked.HOOKS if outdated or runtime else untracked.WHOLE
    if state == State.LOST:
        # Nobody expects the runtime to be there still; what is left of it is worth a word.
        runtime = tuple(path for path in runtime if os.path.lexists(site / path))
    foreign = _foreign(target, files, found)
    way = Way.PLUGIN if plugin else Way.EDITS
    return Status(
        target=target.name,
        location=target.source.location,
        version=target.install.version,
        state=state,
        sentence=_with_foreign(sentence, foreign, state, files),
        plan_id=found.plan_id if found else None,
        recipe=found.recipe if found else None,
        files=files,
        runtime=runtime,
        foreign=foreign,
        outdated=outdated,
        notes=notes,
        repair=_repair(target, place, state, files, runtime, hidden, sentence, way),
        unreadable=hidden,
        leftovers=left,
        way=way,
    )


def journal_of(place: Place, identity: Identity) -> Journal | None:
    """The journal about exactly these bytes, else one about what was here before them.

    Raises:
        ConflictError: a journal is damaged.
    """
    found = journal.journals(place)
    own = [item for item in found if item.identity == identity]
    return next(iter(own or found), None)


def _files(target: Target, place: Place, found: Journal | None) -> dict[str, FileState]:
    if found is not None:
        return {
            item.file: _file(content(place.real(item.file)), item.old_sha256, item.new_sha256)
            for item in found.edits
        }
    states = {}
    ours = _today(target)
    for file in hooked_files(all_recipes()):
        if file in target.source.files():
            data = target.source.read(file)
            if file not in ours and MARK not in data:
                # Another release's recipe edits it.
                continue
            states[file] = FileState.PATCHED if MARK in data else FileState.STOCK
            if foreign_edits({file: unedited(data)}, target.record):
                states[file] = FileState.CHANGED
    return states


def _hooked(changes: Mapping[str, str | None]) -> dict[str, FileState]:
    """The files to whose functions a plug-in assigns; none where its own list is gone."""
    return {
        file: FileState.CHANGED if change else FileState.HOOKED for file, change in changes.items()
    }


def _as_left(files: Mapping[str, FileState]) -> bool:
    """Whether every file is as a patch leaves it."""
    return bool(files) and set(files.values()) <= {FileState.PATCHED, FileState.HOOKED}


def _today(target: Target) -> tuple[str, ...]:
    """The files that would be edited in this release; of all releases if no recipe fits it."""
    try:
        return tuple(choose(target.install.version, all_recipes())[0].by_file())
    except ConflictError:
        return hooked_files(all_recipes())


def _file(found: str | None, old: str, new: str) -> FileState:
    if found is None:
        return FileState.MISSING
    return {old: FileState.STOCK, new: FileState.PATCHED}.get(found, FileState.CHANGED)


def _folded(paths: tuple[str, ...], site: Path) -> tuple[str, ...]:
    tops = {path: path.partition("/")[0] for path in paths}
    gone = {top for top in tops.values() if not (site / top).exists()}
    return tuple(sorted({top if top in gone else path for path, top in tops.items()}))


def _runtime(
    found: Journal | None,
    files: Mapping[str, FileState],
    site: Path,
    installed: Mapping[str, bytes],
) -> tuple[str, ...]:
    """What is wrong beside vLLM; nothing has to be there where there are no hooks."""
    if found is not None:
        return runtime_changes(found.installed, site)
    hooks = {FileState.PATCHED, FileState.HOOKED} & set(files.values())
    if hooks or untracked.runtime_is_there(site):
        return untracked.beside(site, installed)
    return ()


def _unreadable(found: Journal | None, place: Place, site: Path) -> tuple[str, ...]:
    """What lies beside vLLM and cannot be read by everybody who can read vLLM."""
    names = tops(found.installed) if found else (PACKAGE, PLUGIN)
    paths = [path for top in names for path in (site / top, *(site / top).rglob("*"))]
    wrong = [path for path in paths if path.suffix != ".pyc" and is_hidden(path, place.package)]
    return tuple(sorted(path.relative_to(site).as_posix() for path in wrong))


def _judged(
    found: Journal | None,
    identity: Identity,
    files: Mapping[str, FileState],
    runtime: tuple[str, ...],
    hidden: tuple[str, ...],
    place: Place,
) -> tuple[State, str]:
    kinds = set(files.values())
    if found is None:
        if kinds & {FileState.PATCHED, FileState.HOOKED}:
            return State.UNTRACKED, untracked.HOOKS
        if untracked.runtime_is_there(place.site):
            return State.UNTRACKED, untracked.RUNTIME
        return State.STOCK, "Not patched."
    before = f"vLLM {found.identity.version} was patched here (plan {found.plan_id})"
    if found.identity != identity:
        left = assigned.LEFT if assigned.is_there(place.site) else ""
        lost = f"Patch lost: {before}, and another vLLM was installed over it since."
        return State.LOST, f"{lost} {left}".strip()
    if kinds == {FileState.STOCK}:
        return State.LOST, f"Patch lost: {before}, and all its files are stock again."
    site = found.beside(place)
    if site != place.site:
        there = f"{before} through {site}, which leads to the same package"
        return State.DAMAGED, f"{there}. The runtime is there, and here the hooks do nothing."
    if kinds == {FileState.PATCHED} and not runtime:
        return State.APPLIED, f"Patched with plan {found.plan_id}."
    effect = "Its hooks do nothing, as the runtime is gone." if PACKAGE in runtime else ""
    if hidden:
        effect = "Not everybody who can read vLLM can read its runtime."
    return State.DAMAGED, f"Half patched: {before}, and parts of it changed since. {effect}".strip()


def _judged_plugin(
    found: Journal, changes: Mapping[str, str | None], runtime: tuple[str, ...]
) -> tuple[State, str]:
    before = f"vLLM {found.identity.version} was patched here by a plug-in (plan {found.plan_id})"
    if set(tops(found.installed)) <= set(runtime):
        return State.LOST, f"Patch lost: {before}, and the plug-in was removed since."
    changed = [change for change in changes.values() if change]
    if changes and not changed and not runtime:
        return State.APPLIED, f"Patched with plan {found.plan_id}, by {Way.PLUGIN.words}."
    effect = f"Trees are refused: {'; '.join(changed)}." if changed else ""
    return State.DAMAGED, f"Half patched: {before}, and parts of it changed since. {effect}".strip()


def _foreign(
    target: Target, files: Mapping[str, FileState], found: Journal | None
) -> tuple[str, ...]:
    """Files of the package that differ from RECORD, less those that ddtree alone edited."""
    check = RecordCheck(target.source, target.record, limit=_HASHED)
    ours = {file for file, one in files.items() if one == FileState.PATCHED}
    old = {item.file: item.old_sha256 for item in found.edits} if found else {}
    entries = target.record.entries if target.record else {}
    beneath = {
        file
        for file in ours & set(old)
        if (entry := entries.get(file)) is not None
        and entry.algorithm == "sha256"
        and entry.digest is not None
        and entry.digest.hex() != old[file]
    }
    return tuple(file for file in check.finish().modified if file not in ours - beneath)


def _with_foreign(
    sentence: str, foreign: tuple[str, ...], state: State, files: Mapping[str, FileState]
) -> str:
    """The sentence, and what somebody else changed, unless it says so already."""
    if state == State.DAMAGED:
        foreign = tuple(file for file in foreign if file not in files)
    if not foreign:
        return sentence
    names = ", ".join(foreign[:_NAMED]) + (", ..." if len(foreign) > _NAMED else "")
    number = "1 file" if len(foreign) == 1 else f"{len(foreign)} files"
    return f"{sentence} Somebody else changed {number} of this vLLM: {names}."


def _repair(
    target: Target,
    place: Place,
    state: State,
    files: Mapping[str, FileState],
    runtime: tuple[str, ...],
    hidden: tuple[str, ...],
    sentence: str,
    way: Way,
) -> tuple[str, ...]:
    """Commands that lead back, to stock or to a patch that is whole."""
    if state in (State.APPLIED, State.STOCK) or sentence == untracked.WHOLE:
        return ()
    words = ("--apply", *way.options) if state == State.LOST else ("--revert",)
    command = hints.patch(target.name, *words)
    broken = [file for file, one in files.items() if one in (FileState.CHANGED, FileState.MISSING)]
    if state in (State.DAMAGED, State.UNTRACKED) and broken and way == Way.EDITS:
        return way_back(target, place, broken)
    if state == State.UNTRACKED:
        unknown = untracked.unconfirmed(target, files)
        return way_back(target, place, unknown) if unknown else (command,)
    left = [path for path in runtime if path not in hidden and os.path.lexists(place.site / path)]
    if state == State.DAMAGED and left:
        return removal(place.site, left), command
    return (command,)


def _outdated(found: Journal, installed: Mapping[str, bytes]) -> bool:
    current: Mapping[str, str] = {path: sha256(data) for path, data in installed.items()}
    return found.installed != current or found.recipe_digest != _digest(found.identity.version)


def _digest(version: str) -> str | None:
    """The digest of what would be applied to this version today; None if nothing would."""
    try:
        return choose(version, all_recipes())[0].digest
    except ConflictError:
        return None
