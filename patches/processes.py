"""Live processes that run from an environment, read from `/proc`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..analyzers.install.names import printable
from .distribution import PACKAGE
from .place import Place

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, its command line in one string, and how it is known to use the environment."""

    pid: int
    command: str
    why: str


def running_from(place: Place, proc: Path = _PROC) -> tuple[Process, ...]:
    """The processes that have vLLM loaded from `place`, or run an interpreter of its environment.

    This process is left out, and those that it was started by unless they have vLLM loaded. Of
    other users' processes only the command line can be seen.
    """
    own = os.getpid()
    above = set(_ancestors(proc, own))
    found = []
    for pid in sorted(int(entry.name) for entry in proc.glob("[0-9]*")):
        if pid != own:
            why = _loaded(proc / str(pid), place)
            if not why and pid not in above:
                why = _started(proc / str(pid), place)
            if why:
                found.append(Process(pid, _command(proc / str(pid)), why))
    return tuple(found)


def _loaded(process: Path, place: Place) -> str:
    folders = (place.package, place.named / "vllm", place.site / PACKAGE)
    maps = _text(process / "maps")
    for folder in folders:
        if f" {folder}/" in maps:
            return f"has files of {folder} loaded"
    return ""


def _started(process: Path, place: Place) -> str:
    environ = _environ(process)
    on_path = environ.get("PYTHONPATH", "").split(os.pathsep) if _is_python(process) else []
    if str(place.site) in [os.path.realpath(entry) for entry in on_path if entry]:
        return f"has {printable(str(place.site))} on its PYTHONPATH"
    if place.prefix is None:
        return ""
    arguments = _text(process / "cmdline").split("\0")
    own = (place.prefix / "pyvenv.cfg").exists() or (place.prefix / "conda-meta").exists()
    programs = os.path.realpath(place.prefix / "bin")
    paths = [argument for argument in arguments[1:3] if "/" in argument]
    for argument in [arguments[0], *paths]:
        below = os.path.dirname(_resolved(process, argument, environ)) == programs  # noqa: PTH120
        # Of a whole system's interpreter, only vLLM's own commands count.
        if below and (own or "vllm" in " ".join(arguments)):
            return f"was started as {printable(argument)}"
    return ""


def _resolved(process: Path, argument: str, environ: Mapping[str, str]) -> str:
    """Where an argument led to, if it names a program; links of folders followed, of files not.

    An activated environment is found by its name on the PATH that the process was given.
    """
    if "/" not in argument:
        folders = environ.get("PATH", "").split(os.pathsep)
        found = (folder for folder in folders if os.path.isfile(f"{folder}/{argument}"))  # noqa: PTH113
        argument = f"{next(found, '')}/{argument}"
    folder, _, name = argument.rpartition("/")
    start = "/" if argument.startswith("/") else str(process / "cwd")
    return os.path.realpath(os.path.join(start, folder)) + f"/{name}"  # noqa: PTH118


def _is_python(process: Path) -> bool:
    # A shell in which the variable is exported imports nothing.
    try:
        return "python" in (process / "exe").readlink().name
    except OSError:
        return False


def _environ(process: Path) -> dict[str, str]:
    words = _text(process / "environ").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def _command(process: Path) -> str:
    words = _text(process / "cmdline").rstrip("\0").replace("\0", " ")
    return printable(words[:200]) or "(no command line)"


def _ancestors(proc: Path, pid: int) -> Iterator[int]:
    while pid > 1:
        # The name in parentheses may hold anything; the parent is the second word after it.
        fields = _text(proc / str(pid) / "stat").rpartition(")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
        yield pid


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        # It ended meanwhile, or belongs to somebody else.
        return ""
