"""Everything that can be known to stand in the way, looked at before the first write."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.result import Install
from . import hints
from .disk import Attributes
from .distribution import TOPS
from .journal import state_root
from .place import Place
from .plan import Plan
from .processes import Process, running_from

# For temporary copies, folders and the journal itself, beside the bytes of the files.
_SPARE = 1 << 20
_CHECKOUT = (".git", "pyproject.toml", "setup.py")


def preflight(plan: Plan, install: Install, place: Place, *, force: bool) -> None:
    """Refuse what would fail half-way, or hurt somebody.

    Args:
        force: change the install although processes run from it, although it is one of several
            in its environment, or although it is a source checkout.

    Raises:
        ConflictError: with every obstacle that was found.
    """
    obstacles = [*_kind(install, place, force), *_access(plan, place), *_taken(place)]
    if not obstacles:
        obstacles += _space(plan, place)
    if obstacles:
        raise ConflictError(
            "; ".join(obstacles),
            expected="an install that can be changed whole",
            hint=hints.patch(plan.target, "--bundle", "DIR"),
        )
    refuse_running(place, force=force)


def refuse_running(place: Place, *, force: bool) -> None:
    """Refuse while processes run from the environment.

    Raises:
        ConflictError: there are some, and `force` is not given; the message names them.
    """
    running = () if force else running_from(place)
    if running:
        raise ConflictError(
            f"running from this environment: {_named(running)}",
            expected="no process that could see half of a change, or --force",
            hint=f"ps -fp {','.join(str(process.pid) for process in running)}",
        )


def writable(folders: Sequence[Path]) -> Iterator[str]:
    """A sentence for every folder that cannot be written to."""
    for folder in sorted(set(folders)):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield f"{folder} cannot be written to"


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


def _access(plan: Plan, place: Place) -> Iterator[str]:
    files = [place.real(item.file) for item in plan.edits]
    yield from writable([place.site, *(path.parent for path in files)])
    state = _existing(state_root())
    for reason in writable([state]):
        yield f"the journal goes to {state_root()} ($DDTREE_STATE), and {reason}"
    if place.package in (state, *state.parents):
        yield f"the state folder {state_root()} is inside the package"
    for path in files:
        like = Attributes.of(path)
        groups = {os.getegid(), *os.getgroups()}
        if os.geteuid() != 0 and (like.uid != os.geteuid() or like.gid not in groups):
            yield f"{path} belongs to user {like.uid}, group {like.gid}, which could not be kept"


def _taken(place: Place) -> Iterator[str]:
    for top in TOPS:
        if os.path.lexists(place.site / top):
            yield f"{place.site / top} is there already, and this ddtree knows nothing of it"


def _space(plan: Plan, place: Place) -> Iterator[str]:
    size = sum(len(item.old) + len(item.new) for item in plan.edits)
    size += sum(len(data) for data in plan.installed.values())
    needed = {place.site: size, place.package: size, _existing(state_root()): size}
    for folder, wanted in needed.items():
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        if free < wanted + _SPARE:
            yield f"{folder} has {free:,} bytes free, and {wanted + _SPARE:,} are needed"
        # File systems without a fixed number of inodes report none at all.
        if found.f_files and found.f_favail < 2 * (len(plan.installed) + len(plan.edits)):
            yield f"{folder} has {found.f_favail:,} inodes free"


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
