"""Which vLLM of a machine is meant: the one that is named, or the only one that can be found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import DdtreeError, TargetError
from ...install.names import printable
from ...targets.assemble import local_target
from ...targets.directory import DirectorySource
from ...targets.environment import is_environment
from ...targets.interpreter import interpreter_environment
from ...targets.local import is_dir, is_file
from ...targets.resolve import folder_environment
from ...targets.search import ModuleSearch, Place
from ...targets.source import Target
from ..message import Facts
from .places import Candidate, candidates
from .servers import Server, servers

_PACKAGE = "vllm"
_PYTHONS = ("bin/python", "bin/python3", "Scripts/python.exe")


@dataclass(frozen=True, slots=True)
class Found:
    """The install that is meant."""

    target: Target
    root: Path
    facts: Facts


@dataclass(frozen=True, slots=True)
class _Install:
    candidate: Candidate
    search: ModuleSearch
    places: list[Place]

    @property
    def package(self) -> str:
        return os.path.realpath(self.places[0].path)


def find(named: str | None) -> Found:
    """The install in the environment, interpreter or folder `named`, else the only one there is.

    Raises:
        TargetError: there is none, or there are several to choose from.
    """
    running = list(servers())
    if named is not None:
        return _opened(_named(named), running)
    looked = [_looked_at(candidate) for candidate in candidates(running)]
    installs = {one.package: one for one in reversed([one for one in looked if one.places])}
    if not installs:
        raise TargetError(
            f"no vLLM found: Python environments looked at: {len(looked)}"
            + "".join(f", {printable(one.candidate.name)}" for one in looked[:8]),
            expected="an environment in which vLLM is installed, or its path after --python",
            hint="find / -path '*/vllm/__init__.py' -not -path '/proc/*'",
        )
    if len(installs) > 1:
        raise _ambiguous(list(installs.values())[::-1], running)
    return _opened(next(iter(installs.values())), running)


def _looked_at(candidate: Candidate) -> _Install:
    search = ModuleSearch(candidate.environment.sites)
    return _Install(candidate, search, search.find(_PACKAGE))


def _named(named: str) -> _Install:
    path = _expanded(named)
    if is_dir(path):
        environment = folder_environment(str(path), path.absolute())
    else:
        environment = interpreter_environment(path)
    install = _looked_at(Candidate(named, environment))
    if install.places:
        return install
    raise TargetError(
        f"no vLLM in {printable(named)}: site folders looked at: {len(environment.sites)}, "
        f"distributions: {len(install.search.distributions)}, none with a vllm/__init__.py",
        expected="an environment in which vLLM is installed",
        hint=f"find {printable(named)} -path '*/vllm/__init__.py'",
    )


def _opened(install: _Install, running: list[Server]) -> Found:
    name = printable(install.candidate.name)
    target = local_target(name, install.candidate.environment, install.search, install.places)
    source = target.source
    if not isinstance(source, DirectorySource):
        raise TypeError("a local target has a folder")
    package = install.places[0].path
    facts = Facts(
        environment=name,
        interpreter=_interpreter(install.candidate, package),
        location=target.source.location,
        package=printable(install.package),
        metadata=target.metadata,
        writable=os.access(package, os.W_OK) and os.access(package / "__init__.py", os.W_OK),
        servers=tuple(_users(install, running)),
    )
    return Found(target, source.root, facts)


def _interpreter(candidate: Candidate, package: Path) -> str:
    """The Python of the environment: the one that was named, else the one of the package's."""
    if is_file(_expanded(candidate.name)):
        return printable(str(_expanded(candidate.name).absolute()))
    homes = [_expanded(candidate.name).absolute(), *package.parents]
    found = (home / name for home in homes[:5] for name in _PYTHONS)
    return next((printable(str(path)) for path in found if is_file(path)), "")


def _expanded(name: str) -> Path:
    # Not `Path.expanduser`, which raises where a user has no home.
    return Path(os.path.expanduser(name))  # noqa: PTH111


def _users(install: _Install, running: list[Server]) -> Iterator[int]:
    """The servers that have files of the environment in memory, or run its Python."""
    sites = [os.path.realpath(site) for site in install.candidate.environment.sites]
    prefixes = [str(Path(site).parent.parent.parent) for site in sites]
    prefixes = [prefix for prefix in prefixes if is_environment(Path(prefix))]
    folders = tuple(place + os.sep for place in (install.package, *sites, *prefixes))
    for server in running:
        paths = [*server.mapped, *server.command[:2]]
        if any(path.startswith(folders) for path in paths):
            yield server.process


def _ambiguous(installs: list[_Install], running: list[Server]) -> DdtreeError:
    lines = []
    chosen = installs[0]
    for install in installs:
        users = sorted(_users(install, running))
        target = local_target(
            install.candidate.name, install.candidate.environment, install.search, install.places
        )
        name = f"{target.install.distribution or _PACKAGE} {target.install.version or ''}".strip()
        used = f", used by the running server {users[0]}" if users else ""
        lines.append(f"{printable(install.candidate.name)} ({name}{used})")
        if users and not any(_users(chosen, running)):
            chosen = install
    return TargetError(
        f"there are {len(installs)} installs of vLLM: {'; '.join(lines)}",
        expected="one of them after --python",
        hint=f"ddtree inspect host --python {printable(chosen.candidate.name)}",
    )
