"""Where Python environments are usually kept on a server or in a container."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...errors import TargetError
from ...targets.environment import Environment, environment_of, is_environment
from ...targets.interpreter import interpreter_environment
from ...targets.local import is_file
from .servers import Server

# Folders of virtual and conda environments, below the home folder and below the root.
_BELOW_HOME = (
    ".venv",
    "venv",
    "*/.venv",
    "*/venv",
    "*-env",
    "*_env",
    ".virtualenvs/*",
    "venvs/*",
    "envs/*",
    "*conda3",
    "*conda3/envs/*",
    "*forge3",
    "*forge3/envs/*",
    ".conda/envs/*",
    ".pyenv/versions/*",
    ".local/share/uv/tools/*",
    ".local/pipx/venvs/*",
    ".local/share/pipx/venvs/*",
)
BELOW_ROOT = (
    ".venv",
    "venv",
    "opt/*",
    "opt/*/.venv",
    "opt/*/venv",
    "opt/*/envs/*",
    "srv/*",
    "srv/*/.venv",
    "srv/*/venv",
    "app/.venv",
    "workspace/.venv",
    "workspace/venv",
)
_MOST = 200
_MOST_ASKED = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """An environment, and what names it to `--python`."""

    name: str
    environment: Environment


def candidates(running: list[Server]) -> Iterator[Candidate]:
    """The environments worth a look: active ones, those of servers, of the PATH, and kept ones."""
    seen: set[tuple[Path, ...]] = set()
    found = [*_prefixes(running), *_asked(running)]
    for candidate in islice(found, _MOST):
        sites = tuple(Path(os.path.realpath(site)) for site in candidate.environment.sites)
        if sites and sites not in seen:
            seen.add(sites)
            yield candidate


def _prefixes(running: list[Server]) -> Iterator[Candidate]:
    """Environments that are told from their files."""
    named = [os.environ.get("VIRTUAL_ENV", ""), os.environ.get("CONDA_PREFIX", "")]
    named += [str(Path(path).parent.parent) for path in _pythons(running)]
    # In a container a user may have no home, and no entry anywhere.
    home = os.path.expanduser("~")  # noqa: PTH111
    kept = [str(path) for path in _globbed(Path(home), _BELOW_HOME)] if home != "~" else []
    kept += [str(path) for path in _globbed(Path("/"), BELOW_ROOT)]
    for prefix in dict.fromkeys([*named, *kept]):
        if prefix and is_environment(Path(prefix)):
            yield Candidate(prefix, environment_of(Path(prefix)))


def _asked(running: list[Server]) -> Iterator[Candidate]:
    """The environments of interpreters that belong to none of those: of the system, mostly."""
    asked: set[str] = set()
    for path in _pythons(running):
        real = os.path.realpath(path)
        prefix = Path(path).parent.parent
        if real in asked or is_environment(prefix) or len(asked) >= _MOST_ASKED:
            continue
        asked.add(real)
        try:
            yield Candidate(path, interpreter_environment(Path(path)))
        except TargetError:
            continue


def _pythons(running: list[Server]) -> Iterator[str]:
    """Paths of interpreters: of servers, of this process, and of the PATH."""
    for server in running:
        # The name that it was started by tells its virtual environment, the real path does not.
        for word in (*server.command[:2], server.executable):
            path = Path(word)
            if path.is_absolute() and is_file(path):
                yield str(path if path.name.startswith("python") else path.with_name("python"))
    if sys.executable:
        yield sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if Path(folder).is_absolute():
            yield from (str(path) for path in sorted(Path(folder).glob("python3*")) if _runs(path))


def _runs(path: Path) -> bool:
    version = path.name[len("python3") :]
    return not version.strip(".0123456789") and is_file(path)


def _globbed(root: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        try:
            yield from islice(sorted(root.glob(pattern)), _MOST)
        except OSError:
            continue
