"""Where on this machine an install lies, with every symbolic link resolved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.targets.directory import DirectorySource
from ..analyzers.targets.environment import is_environment
from ..analyzers.targets.local import is_file
from ..analyzers.targets.source import Target
from . import hints


@dataclass(frozen=True, slots=True)
class Place:
    """The folders that a patch writes to.

    Args:
        named: the site folder as it was found, before links were resolved.
        site: the real folder that imports start from; the runtime goes here.
        package: the real `vllm` folder.
        prefix: the environment that the site belongs to; None if it belongs to none.
        python: the interpreter of that environment; None if there is none.
    """

    named: Path
    site: Path
    package: Path
    prefix: Path | None
    python: Path | None

    def real(self, file: str) -> Path:
        """The path of a file of the site; links of folders are resolved, of the file are not."""
        top, _, rest = file.partition("/")
        path = self.package / rest if top == "vllm" else self.site / file
        return Path(os.path.realpath(path.parent)) / path.name


def place_of(target: Target, python: Path | None = None) -> Place:
    """The place of a target.

    Raises:
        ConflictError: it is an archive, which is never changed.
    """
    named = Path(target.source.location)
    package = named / "vllm"
    if not isinstance(target.source, DirectorySource) or not is_file(package / "__init__.py"):
        raise ConflictError(
            f"{target.name} is no folder on this machine that can be changed",
            expected="an installed vLLM; an archive can be patched into a bundle",
            hint=hints.patch(target.name, "--bundle", "DIR"),
        )
    return place_at(named, python)


def place_at(named: Path, python: Path | None = None) -> Place:
    """The place of a site folder, whether vLLM is in it or not."""
    site = Path(os.path.realpath(named))
    prefix = _prefix(named) or _prefix(site)
    found = python.absolute() if python else _interpreter(prefix, site)
    return Place(named, site, Path(os.path.realpath(named / "vllm")), prefix, found)


def _prefix(site: Path) -> Path | None:
    for folder in list(site.parents)[:3]:
        if is_environment(folder) or (folder / "bin" / "python3").exists():
            return folder
    return None


def _interpreter(prefix: Path | None, site: Path) -> Path | None:
    if prefix is None:
        return None
    version = next((part for part in reversed(site.parts) if part.startswith("python3.")), None)
    names = [version, "python3", "python"] if version else ["python"]
    candidates = [prefix / "bin" / name for name in names if name]
    return next((path for path in candidates if is_file(path) and os.access(path, os.X_OK)), None)
