"""Ways out of a state that a plain `--apply` or `--revert` does not lead out of: commands to paste.

None of them throws away what somebody else put into a file, where hooks alone can be taken out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ..analyzers.targets.directory import DirectorySource
from ..analyzers.targets.source import Target
from . import hints
from .marks import MARK, unedited
from .place import Place, place_of


def way_back(target: Target, place: Place, files: Sequence[str]) -> tuple[str, ...]:
    """Commands for hooked files whose originals nobody knows, in their order; the last is a revert.

    Args:
        files: paths relative to the site; they were changed, or are not there any more.
    """
    revert = hints.patch(target.name, "--revert")
    paths = [place.real(file) for file in files]
    repository = _repository(place)
    if repository is not None and target.record is None:
        names = [str(path.relative_to(repository)) for path in paths]
        return shlex.join(["git", "-C", str(repository), "checkout", "--", *names]), revert
    if all(_gives_up_its_hooks(path) for path in paths):
        return (hints.patch(target.name, "--revert", hints.LOCAL_EDITS),)
    if _is_released(target):
        return reinstall(target, place.python), revert
    return hints.inspect(target.name), revert


def reinstall(target: Target, python: Path | None = None) -> str:
    """How the files of a release come back, with the interpreter that they belong to.

    What is known of the install if nothing says how it got there.

    Args:
        python: the interpreter; that of the target's environment if not given.
    """
    install = target.install
    if install.distribution is None or install.version is None:
        return hints.inspect(target.name)
    wanted = f"{install.distribution}=={install.version}"
    if isinstance(target.source, DirectorySource):
        python = python or place_of(target).python
        if python is not None and _without_pip(target):
            start = ["uv", "pip", "install", "--python", str(python), "--reinstall"]
            return shlex.join([*start, "--no-deps", wanted])
    start = [str(python or "python"), "-m", "pip", "install", "--force-reinstall"]
    return shlex.join([*start, "--no-deps", wanted])


def removal(site: Path, paths: Iterable[str]) -> str:
    """How what lies beside vLLM is removed, of which these paths are not as they were put there."""
    tops = sorted({path.partition("/")[0] for path in paths})
    return shlex.join(["rm", "-r", *(str(site / top) for top in tops)])


def _gives_up_its_hooks(path: Path) -> bool:
    """Whether nothing of ddtree is left in a file once its lines are taken out."""
    try:
        return MARK not in unedited(path.read_bytes())
    except OSError:
        return False


def _repository(place: Place) -> Path | None:
    """The root of the git checkout that the package is, if it is one."""
    above = place.package.parent
    roots = (above, above.parent) if above.name == "src" else (above,)
    return next((root for root in roots if (root / ".git").exists()), None)


def _is_released(target: Target) -> bool:
    """Whether an index has this very build: no nightly, no build of somebody's own."""
    try:
        version = Version(target.install.version or "")
    except InvalidVersion:
        return False
    folder = Path(target.source.location) / target.metadata
    local = version.local is not None or (folder / "direct_url.json").exists()
    return bool(target.metadata) and not version.is_devrelease and not local


def _without_pip(target: Target) -> bool:
    """Whether uv put it there and left pip out."""
    site = Path(target.source.location)
    try:
        by = (site / target.metadata / "INSTALLER").read_bytes()
    except OSError:
        return False
    return bool(target.metadata) and by.strip() == b"uv" and not (site / "pip").is_dir()
