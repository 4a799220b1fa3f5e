"""Everything that can be known to stand in the way, looked at before the first write."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.result import Install
from . import hints
from .bytecode import compiled
from .disk import Attributes
from .distribution import tops
from .journal import Journal, install_folder, state_root
from .place import Place
from .plan import Plan
from .processes import Process, processes_of

# For temporary copies, folders and the journal itself, beside the bytes of the files.
_SPARE = 1 << 20
_CHECKOUT = (".git", "pyproject.toml", "setup.py")


def preflight(
    plan: Plan, install: Install, place: Place, *, force: bool, lost: Container[str] = ()
) -> tuple[str, ...]:
    """Refuse what would fail half-way, or hurt somebody; sentences about what nobody looked at.

    Args:
        force: change the install although processes run from it, although it is one of several
            in its environment, or although it is a source checkout.
        lost: names in the site that belong to a patch that was lost, and go first.

    Raises:
        ConflictError: with every obstacle that was found.
    """
    files = {item.file: Attributes.of(place.real(item.file)) for item in plan.edits}
    obstacles = [
        *_kind(install, place, force),
        *_unwritable([place.site]),
        *_unkept(files, place),
        *_state(install_folder(place), place),
        *(
            f"{place.site / top} is there already, and this ddtree knows nothing of it"
            for top in tops(plan.installed)
            if os.path.lexists(place.site / top) and top not in lost
        ),
    ]
    size = sum(len(item.old) + len(item.new) for item in plan.edits)
    size += sum(len(data) for data in plan.installed.values())
    obstacles = obstacles or [*_full(place, size, 2 * (len(plan.installed) + len(plan.edits)))]
    if obstacles:
        raise ConflictError(
            "; ".join(obstacles),
            expected="an install that can be changed whole",
            hint=hints.patch(plan.target, *plan.options, "--bundle", "DIR"),
        )
    return refuse_running(place, force=force)


def refuse_irreversible(
    journal: Journal, place: Place, left: Iterable[str] = (), *, force: bool
) -> tuple[str, ...]:
    """Refuse a revert that would fail half-way; sentences about what nobody looked at.

    Args:
        left: paths in the site that are removed as well.

    Raises:
        ConflictError: with every obstacle that was found.
    """
    # A file that is gone hinders nobody.
    edits = [item for item in journal.edits if place.real(item.file).exists()]
    files = {item.file: item.attributes for item in edits}
    site = journal.beside(place)
    tops = sorted({path.partition("/")[0] for path in journal.installed})
    beside = [site / top for top in tops if (site / top).is_dir()]
    beside += [folder for top in beside for folder in top.rglob("*") if folder.is_dir()]
    obstacles = [
        *_unwritable([site, *beside, *(place.real(path).parent for path in left)]),
        *_unkept(files, place),
        *_sticky(site / top for top in tops if os.path.lexists(site / top)),
        *_state(journal.folder, place),
    ]
    size = sum(place.real(file).stat().st_size for file in files)
    obstacles = obstacles or [*_full(place, size, 2 * len(files))]
    if obstacles:
        raise ConflictError(
            "; ".join(obstacles),
            expected="an install that this user can give back whole",
            hint=hints.patch(place.named, "--status"),
        )
    return refuse_running(place, force=force)


def refuse_running(place: Place, *, force: bool) -> tuple[str, ...]:
    """Refuse while processes run from the environment; sentences about what nobody looked at.

    Raises:
        ConflictError: there are some, and `force` is not given; the message names them.
    """
    if force:
        return ()
    found = processes_of(place)
    remarks = (found.remark,) if found.remark else ()
    if found.running:
        raise ConflictError(
            ". ".join([f"running from this environment: {_named(found.running)}", *remarks]),
            expected="no process that could see half of a change, or --force",
            hint=f"ps -fp {','.join(str(process.pid) for process in found.running)}",
        )
    return remarks


def _named(running: Sequence[Process]) -> str:
    return "; ".join(f"{item.pid} ({item.command}) {item.why}" for item in running)


def _kind(install: Install, place: Place, force: bool) -> Iterator[str]:
    if install.editable:
        yield f"{install.location} is an editable install, whose files are somebody's checkout"
    checkout = [name for name in _CHECKOUT if (place.site / name).exists()]
    if checkout and not install.editable and not force:
        yield f"{place.site} is a source checkout ({checkout[0]} is in it); --force changes it"
    if install.others and not force:
        others = ", ".join(
            f"{other.distribution} {other.version or '?'} at {other.location}"
            for other in install.others
        )
        yield f"this environment holds other vLLM installs ({others}); --force changes the first"


def _unwritable(folders: Iterable[Path]) -> Iterator[str]:
    """A sentence for every folder that cannot be written to."""
    for folder in sorted(set(folders)):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield f"{folder} cannot be written to"


def _unkept(files: Mapping[str, Attributes], place: Place) -> Iterator[str]:
    """A sentence for whatever keeps this user from putting files with such attributes in place."""
    paths = {file: place.real(file) for file in files}
    caches = [found.parent for file in files for found in compiled(place, file)]
    yield from _unwritable([*(path.parent for path in paths.values()), *caches])
    if os.geteuid() == 0:
        return
    groups = {os.getegid(), *os.getgroups()}
    for file, like in files.items():
        if like.uid != os.geteuid() or like.gid not in groups:
            owner = f"user {like.uid}, group {like.gid}"
            yield f"{paths[file]} belongs to {owner}, which this user could not keep"
    yield from _sticky(paths.values())


def _sticky(paths: Iterable[Path]) -> Iterator[str]:
    """A sentence for every path that its owner alone may rename."""
    own = os.geteuid()
    for path in paths:
        folder = path.parent.stat()
        if folder.st_mode & stat.S_ISVTX and own not in (0, folder.st_uid, path.lstat().st_uid):
            yield f"{path} is somebody else's, in a folder that lets owners alone rename"


def _state(folder: Path, place: Place) -> Iterator[str]:
    there = _existing(folder)
    for reason in _unwritable([there]):
        yield f"the journal goes to {state_root()} ($DDTREE_STATE), and {reason}"
    if place.package in (there, *there.parents):
        yield f"the state folder {state_root()} is inside the package"


def _full(place: Place, size: int, files: int) -> Iterator[str]:
    for folder in dict.fromkeys(map(_existing, (place.site, place.package, state_root()))):
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        if free < size + _SPARE:
            yield f"{folder} has {free:,} bytes free, and {size + _SPARE:,} are needed"
        # File systems without a fixed number of inodes report none at all.
        if found.f_files and found.f_favail < files:
            yield f"{folder} has {found.f_favail:,} inodes free"


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
