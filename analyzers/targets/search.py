"""Where an environment would import a module from, worked out without importing anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..install.distribution import Distribution, distributions
from ..install.editable import finder_mapping, finder_modules, pth_folders
from ..install.site import text_of
from .local import LocalSite, is_file

_EDITABLE_PTH = ("__editable__", "_editable_impl_", "easy-install", "easy_install")
_CHECKOUT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")


@dataclass(frozen=True, slots=True)
class Place:
    """A module's file or folder, the site it was reached through, and how.

    `via` names the file of the site that leads to a folder elsewhere; empty if the module lies in
    the site itself.
    """

    path: Path
    site: LocalSite
    editable: bool
    via: str = ""


@dataclass(frozen=True, slots=True)
class _Step:
    folder: Path
    site: LocalSite
    editable: bool
    via: str = ""


class ModuleSearch:
    """The import path of an environment: site folders, what their .pth files add, and finders."""

    def __init__(self, sites: Sequence[Path]) -> None:
        self.sites = [LocalSite(folder) for folder in sites]
        self.distributions = [dist for site in self.sites for dist in distributions(site)]
        self._steps = [step for site in self.sites for step in _steps(site)]
        self._steps += _checkouts(self.distributions)
        # Finders are asked last: setuptools appends them to sys.meta_path.
        self._mapped = [item for site in self.sites for item in _mapped(site)]

    def find(self, module: str) -> list[Place]:
        """Every place of a top-level module, first the one that an import would take."""
        found: dict[str, Place] = {}
        for place in self._places(module):
            found.setdefault(os.path.realpath(place.path), place)
        return list(found.values())

    def _places(self, module: str) -> Iterator[Place]:
        for step in self._steps:
            for path in (step.folder / module, step.folder / f"{module}.py"):
                if is_module(path):
                    yield Place(path, step.site, step.editable, step.via)
        for name, path, site, via in self._mapped:
            # A single module is mapped without its suffix.
            for candidate in (path, path.with_name(f"{path.name}.py")):
                if name == module and is_module(candidate):
                    yield Place(candidate, site, True, via)


def is_module(path: Path) -> bool:
    """Whether imports would take this file or folder for a regular module."""
    return (path.suffix == ".py" and is_file(path)) or is_file(path / "__init__.py")


def _steps(site: LocalSite) -> Iterator[_Step]:
    yield _Step(site.folder, site, False)
    for name in site.names():
        if name.endswith(".pth"):
            for line in pth_folders(text_of(site, name)):
                yield _step(site, name, line)
        elif name.endswith(".egg-link"):
            for line in list(pth_folders(text_of(site, name)))[:1]:
                yield _Step(site.folder / line, site, True, name)


def _step(site: LocalSite, name: str, line: str) -> _Step:
    folder = site.folder / line.replace("\0", "")
    below = os.path.realpath(folder).startswith(os.path.realpath(site.folder) + os.sep)
    editable = not below and (name.startswith(_EDITABLE_PTH) or _looks_like_checkout(folder))
    return _Step(folder, site, editable, name)


def _looks_like_checkout(folder: Path) -> bool:
    # The code of a checkout lies at its top, or in its src/.
    tops = (folder, folder.parent) if folder.name == "src" else (folder,)
    return any(is_file(top / name) for top in tops for name in _CHECKOUT_FILES)


def _checkouts(found: Sequence[Distribution]) -> Iterator[_Step]:
    for dist in found:
        url = dist.editable_url()
        if url is not None and isinstance(dist.site, LocalSite):
            for folder in (Path(url), Path(url) / "src"):
                yield _Step(folder, dist.site, True, f"{dist.folder}/direct_url.json")


def _mapped(site: LocalSite) -> Iterator[tuple[str, Path, LocalSite, str]]:
    for name in site.names():
        if name.endswith(".pth"):
            for finder in finder_modules(text_of(site, name)):
                for module, path in finder_mapping(text_of(site, f"{finder}.py")).items():
                    yield module, Path(path.replace("\0", "")), site, name
