"""From the place of a `vllm` package on this machine to a target with its facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ..install.distribution import Distribution, distributions, owners
from ..install.entry_points import module_of, plugins_of
from ..install.names import printable, without_suffix
from ..install.owner import rank_owners, record_of
from ..install.record import Record
from ..install.unneeded import unneeded_modules
from ..install.version import identity_of
from ..result import Install, OtherInstall, Plugin
from .directory import DirectorySource
from .environment import Environment, python_of
from .local import LocalSite, read_regular
from .search import ModuleSearch, Place
from .siblings import find_siblings, remarks
from .source import Target

_PACKAGE = "vllm"


def local_target(
    name: str, environment: Environment, search: ModuleSearch, places: Sequence[Place]
) -> Target:
    """The target at the first of `places`; the rest are other installs of the same environment."""
    place = places[0]
    owners_ = {plugin: dist for dist in search.distributions for plugin in plugins_of(dist)}
    plugins = tuple(owners_)
    located = {plugin: _located(search, plugin, dist) for plugin, dist in owners_.items()}
    parts = {_PACKAGE: place.path}
    for found in located.values():
        parts.update({path: folder for path, folder in found.items() if path not in parts})
    source = DirectorySource(_root(place), parts)
    claims = rank_owners(_claims(place, search), source)
    record = None if place.editable or not claims else record_of(claims[0])
    beside = _Beside(search)
    siblings = find_siblings(source, record, beside.read, beside.own(_root(place)), parts)
    source.add({path: beside.paths[path] for found in siblings for path in found.files})
    distribution, version = _identity(place, claims)
    install = Install(
        distribution=distribution,
        version=version,
        location=source.location,
        python=environment.python or python_of(_root(place)),
        torch=_version_of(search, "torch"),
        triton=_version_of(search, "triton"),
        editable=place.editable,
        plugins=plugins,
        others=tuple(_others(search, places, claims)),
    )
    inside = tuple(plugin for plugin in plugins if located[plugin])
    said = (*notes(install, claims, record), *remarks(siblings))
    beneath = bool(claims) and claims[0].site.location == source.location
    metadata = claims[0].folder if beneath else ""
    return Target(name, source, install, inside, record, said, siblings, metadata)


class _Beside:
    """Files of the packages of an environment by the path that imports know them under."""

    def __init__(self, search: ModuleSearch) -> None:
        self._search = search
        self._tops: dict[str, Path | None] = {}
        # Where each file that was read lies.
        self.paths: dict[str, Path] = {}

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is none that can be read."""
        top, _, rest = path.partition("/")
        place = self._top(without_suffix(top, ".py"))
        if place is None or (place.suffix == ".py") is bool(rest):
            return None
        file = place / rest if rest else place
        try:
            data = read_regular(str(file))
        except OSError:
            return None
        self.paths[path] = file
        return data

    def own(self, root: Path) -> Callable[[], Iterable[str]]:
        """Lists the modules at the root of `vllm` that nothing installed there requires."""
        site = LocalSite(root)
        near = [one for one in self._search.distributions if one.site.location == site.location]
        return partial(unneeded_modules, site, near)

    def _top(self, name: str) -> Path | None:
        if name not in self._tops:
            found = self._search.find(name)
            self._tops[name] = found[0].path if found else None
        return self._tops[name]


def notes(install: Install, claims: Sequence[Distribution], record: Record | None) -> Iterator[str]:
    """Sentences about what the facts of an install leave open."""
    if record is not None and record.malformed:
        lines = (
            "1 line that makes" if record.malformed == 1 else f"{record.malformed} lines that make"
        )
        yield f"RECORD has {lines} no sense."
    installed = bool(claims) and claims[0].folder.endswith(".dist-info")
    if installed and record is None and not install.editable:
        yield (
            f"{install.distribution} has no RECORD of its package's files, so local edits cannot "
            "be told from what was installed."
        )


def _root(place: Place) -> Path:
    return place.path.parent if place.path.name == _PACKAGE else place.path


def _claims(place: Place, search: ModuleSearch) -> list[Distribution]:
    """The distributions that say that the package at `place` is theirs."""
    near = [dist for dist in search.distributions if dist.site is place.site]
    if place.editable:
        linked = [dist for dist in near if _leads_to(dist, place)]
        return linked or _own_metadata(place)
    if place.via:
        return _own_metadata(place)
    claims = owners(near, _PACKAGE)
    settled = [dist for dist in claims if dist.editable_url() is None]
    return settled or claims


def _own_metadata(place: Place) -> list[Distribution]:
    return owners(list(distributions(LocalSite(_root(place)))), _PACKAGE)


def _leads_to(dist: Distribution, place: Place) -> bool:
    if dist.folder in place.via or (place.via.endswith(".pth") and dist.lists(place.via)):
        return True
    url = dist.editable_url()
    real = os.path.realpath(place.path)
    return url is not None and real.startswith(os.path.realpath(url) + os.sep)


def _identity(place: Place, claims: Sequence[Distribution]) -> tuple[str | None, str | None]:
    root = _root(place)
    name, version = identity_of(LocalSite(root), claims)
    if root.name == "src" and not (name and version):
        # The project's own files lie above the folder of its code.
        above = identity_of(LocalSite(root.parent), [])
        return name or above[0], version or above[1]
    return name, version


def _others(
    search: ModuleSearch, places: Sequence[Place], claims: Sequence[Distribution]
) -> Iterator[OtherInstall]:
    for loser in claims[1:]:
        name, version = loser.identity()
        yield OtherInstall(name, version, loser.site.location)
    for place in places[1:]:
        other, version = _identity(place, _claims(place, search))
        yield OtherInstall(other or _PACKAGE, version, printable(str(_root(place))))


def _version_of(search: ModuleSearch, module: str) -> str | None:
    found = owners(search.distributions, module)
    return found[0].identity()[1] if found else None


def _located(search: ModuleSearch, plugin: Plugin, dist: Distribution) -> dict[str, Path]:
    """What an entry point loads, and the other packages that come with it, by path below the root.

    Each is the package or module file of the top-level name, or the first package below it if that
    is only a namespace.
    """
    found = _loaded(search, plugin)
    if found and _PACKAGE not in dist.owns:
        for name in dist.packages():
            places = search.find(name)
            found |= {f"{name}{place.path.suffix}": place.path for place in places[:1]}
    return found


def _loaded(search: ModuleSearch, plugin: Plugin) -> dict[str, Path]:
    names = module_of(plugin).split(".")
    if not all(name.isidentifier() for name in names):
        return {}
    for depth in range(1, len(names) + 1):
        path = "/".join(names[:depth])
        for place in search.find(path):
            return {path + place.path.suffix: place.path}
    return {}
