"""Ways out of a state that no flag of `ddtree patch` leads out of: commands, ready to be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from ..analyzers.targets.directory import DirectorySource
from ..analyzers.targets.source import Target
from . import hints
from .place import Place, place_of


def reinstall(target: Target, python: Path | None = None) -> str:
    """How the files of an install come back, with the interpreter that they belong to.

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


def removal(place: Place, paths: Iterable[str]) -> str:
    """How what lies beside vLLM is removed, of which these paths are not as they were put there."""
    tops = sorted({path.partition("/")[0] for path in paths})
    return shlex.join(["rm", "-r", *(str(place.site / top) for top in tops)])


def _without_pip(target: Target) -> bool:
    """Whether uv put it there and left pip out."""
    site = Path(target.source.location)
    try:
        by = (site / target.metadata / "INSTALLER").read_bytes()
    except OSError:
        return False
    return bool(target.metadata) and by.strip() == b"uv" and not (site / "pip").is_dir()
