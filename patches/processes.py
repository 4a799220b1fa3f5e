"""Live processes that run from an environment, read from `/proc`.

What of a process cannot be read, because it belongs to somebody else, hinders nothing: the process
is counted, so that a user hears of what nobody looked at.
"""

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


@dataclass(frozen=True, slots=True)
class Processes:
    """What was seen of the live processes.

    Attributes:
        running: those that use the environment.
        unseen: how many could not be looked at; None where only this user's can be listed.
    """

    running: tuple[Process, ...]
    unseen: int | None

    @property
    def remark(self) -> str:
        """What nobody looked at, in a sentence; empty if that is nothing."""
        if self.unseen is None:
            return "The processes of other users could not be looked at."
        if not self.unseen:
            return ""
        number = "1 process" if self.unseen == 1 else f"{self.unseen} processes"
        return f"{number} of other users could not be looked at."


def processes_of(place: Place, proc: Path = _PROC) -> Processes:
    """The processes that have vLLM loaded from `place`, or run an interpreter of its environment.

    This process is left out, and those that it was started by unless they have vLLM loaded. Of
    other users' processes mostly the command line alone can be read.
    """
    own = os.getpid()
    above = set(_ancestors(proc, own))
    found, unseen = [], 0
    for pid in sorted(int(entry.name) for entry in proc.glob("[0-9]*")):
        if pid == own:
            continue
        process = _Live(proc / str(pid))
        why = _loaded(process, place)
        if not why and pid not in above:
            why = _started(process, place)
        if why:
            found.append(Process(pid, process.command, why))
        elif process.closed and process.text("cmdline"):
            # Threads of the kernel have no command line.
            unseen += 1
    # Every machine and every container has a first process; some show it to its owner alone.
    listed = (proc / "1").exists()
    return Processes(tuple(found), unseen if listed else None)


class _Live:
    """The folder of a process, which may be somebody else's and may go away at any time.

    Attributes:
        closed: whether something in it could not be read for want of permission.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.closed = False

    def text(self, name: str) -> str:
        """The text of a file in the folder; empty where it cannot be read."""
        try:
            return (self._folder / name).read_bytes().decode("utf-8", "surrogateescape")
        except PermissionError:
            self.closed = True
        except OSError:
            # It has ended meanwhile, and can see nothing any more.
            pass
        return ""

    def link(self, name: str) -> str:
        """Where a link in the folder leads to; empty where it cannot be read."""
        try:
            return str((self._folder / name).readlink())
        except PermissionError:
            self.closed = True
        except OSError:
            pass
        return ""

    def real(self, path: str) -> str:
        """A path without links; as it is where it leads through what cannot be read."""
        try:
            return os.path.realpath(path)
        except OSError:
            # Links of other processes' folders, which Python 3.11 and 3.12 stumble over.
            self.closed = True
            return path

    @property
    def environ(self) -> dict[str, str]:
        """The variables that it was started with."""
        words = self.text("environ").split("\0")
        return dict(word.split("=", 1) for word in words if "=" in word)

    @property
    def command(self) -> str:
        """The beginning of its command line."""
        words = self.text("cmdline").rstrip("\0").replace("\0", " ")
        return printable(words[:200]) or "(no command line)"


def _loaded(process: _Live, place: Place) -> str:
    folders = (place.package, place.named / "vllm", place.site / PACKAGE)
    maps = process.text("maps")
    for folder in folders:
        if f" {folder}/" in maps:
            return f"has files of {folder} loaded"
    return ""


def _started(process: _Live, place: Place) -> str:
    environ = process.environ
    # A shell in which the variable is exported imports nothing.
    imports = "python" in os.path.basename(process.link("exe"))  # noqa: PTH119
    on_path = environ.get("PYTHONPATH", "").split(os.pathsep) if imports else []
    if str(place.site) in [process.real(entry) for entry in on_path if entry]:
        return f"has {printable(str(place.site))} on its PYTHONPATH"
    if place.prefix is None:
        return ""
    arguments = process.text("cmdline").split("\0")
    own = (place.prefix / "pyvenv.cfg").exists() or (place.prefix / "conda-meta").exists()
    programs = os.path.realpath(place.prefix / "bin")
    paths = [argument for argument in arguments[1:3] if "/" in argument]
    for argument in [arguments[0], *paths]:
        below = os.path.dirname(_resolved(process, argument, environ)) == programs  # noqa: PTH120
        # Of a whole system's interpreter, only vLLM's own commands count.
        if below and (own or "vllm" in " ".join(arguments)):
            return f"was started as {printable(argument)}"
    return ""


def _resolved(process: _Live, argument: str, environ: Mapping[str, str]) -> str:
    """Where an argument led to, if it names a program; links of folders followed, of files not.

    An activated environment is found by its name on the PATH that the process was given.
    """
    if "/" not in argument:
        folders = environ.get("PATH", "").split(os.pathsep)
        found = (folder for folder in folders if os.path.isfile(f"{folder}/{argument}"))  # noqa: PTH113
        argument = f"{next(found, '')}/{argument}"
    folder, _, name = argument.rpartition("/")
    start = "/" if argument.startswith("/") else process.link("cwd")
    # Where it stands may be unknown; our own folder is another place.
    return process.real(os.path.join(start, folder)) + f"/{name}" if start else ""  # noqa: PTH118


def _ancestors(proc: Path, pid: int) -> Iterator[int]:
    while pid > 1:
        # The name in parentheses may hold anything; the parent is the second word after it.
        fields = _Live(proc / str(pid)).text("stat").rpartition(")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
        yield pid
