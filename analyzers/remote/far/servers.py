"""Running vLLM servers, by what their processes say of themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...targets.local import is_dir

_PROC = Path("/proc")
# Engine processes rename themselves; their files stay mapped.
_NAMED = re.compile(rb"vllm", re.IGNORECASE)
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Server:
    """A process of vLLM.

    Attributes:
        process: its number.
        command: its arguments.
        executable: what it runs, links resolved; empty if that may not be looked at.
        mapped: the shared libraries that it has in memory.
    """

    process: int
    command: tuple[str, ...]
    executable: str
    mapped: tuple[str, ...]


def servers(proc: Path = _PROC) -> Iterator[Server]:
    """The vLLM processes that may be looked at, but this one, lowest number first."""
    if not is_dir(proc):
        return
    for number in sorted(int(path.name) for path in proc.iterdir() if path.name.isdecimal()):
        if number != os.getpid():
            server = _server(proc / str(number), number)
            if server is not None:
                yield server


def _server(folder: Path, number: int) -> Server | None:
    command = _read(folder / "cmdline")
    words = tuple(os.fsdecode(word) for word in command.split(b"\0") if word)
    if not words or not _is_server(command):
        return None
    try:
        executable = os.fspath((folder / "exe").resolve(strict=True))
    except OSError:
        executable = ""
    return Server(number, words, executable, tuple(dict.fromkeys(_mapped(folder))))


def _is_server(command: bytes) -> bool:
    """Whether a Python runs vLLM: a script or module of that name, or an engine's new title."""
    first, *rest = command.split(b"\0")
    if _NAMED.match(_name(first)):
        return True
    if b"python" not in _name(first):
        return False
    words = [word for word in rest if word]
    named = [_name(word) for word in words[:1]]
    if words[:1] == [b"-m"] or words[1:2] == [b"-m"]:
        named = words[1:3]
    return any(_NAMED.match(word) for word in named)


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _mapped(folder: Path) -> Iterator[str]:
    for line in _read(folder / "maps").splitlines():
        _, slash, path = line.partition(b"/")
        if slash and b"-packages/" in path:
            yield "/" + os.fsdecode(path)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as handle:
            return handle.read(_MOST_BYTES)
    except OSError:
        return b""
