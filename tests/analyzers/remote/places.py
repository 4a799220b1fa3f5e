"""Other sides for the tests: processes of this machine that see none of the user's settings."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ddtree.analyzers.remote.ask import Opener
from ddtree.analyzers.transports import Running, Transport
from ddtree.analyzers.transports.local import LocalTransport

# What commands need of the system; a Python is added by each test.
_TOOLS = ("sh", "env", "cat", "head", "printf", "sleep", "kill")


@dataclass(slots=True)
class Elsewhere:
    """A `Transport` to a place with a home folder and a PATH of its own.

    Attributes:
        root: a folder of the test's.
        pythons: the interpreters on its PATH, by the name that they have there.
        instead: a shell script that runs in place of the command; `$TOKEN` is that of the reply.
        noise: a shell script that runs before the command, as a login shell's rc file does.
        commands: how many were run.
    """

    root: Path
    pythons: dict[str, str] = field(default_factory=lambda: {"python3": sys.executable})
    instead: str = ""
    noise: str = ""
    commands: int = 0

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """Run it there."""
        self.commands += 1
        script = self.instead or f'{self.noise}\nexec "$@"'
        clean = [f"HOME={self.root / 'home'}", f"PATH={self._path()}", f"TOKEN={command[-1]}"]
        words = ["/usr/bin/env", "-i", *clean, "sh", "-c", script, "rc", *command]
        return LocalTransport().start(words, stdin)

    def open(self) -> AbstractContextManager[Transport]:
        """An `Opener`."""
        return contextlib.nullcontext(self)

    def _path(self) -> Path:
        folder = self.root / "bin"
        (self.root / "home").mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        for name in _TOOLS:
            found = shutil.which(name)
            if found and not (folder / name).exists():
                (folder / name).symlink_to(found)
        for name, python in self.pythons.items():
            script = folder / name
            # Not a link: an interpreter finds its library by the name it is called by.
            script.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
            script.chmod(0o755)
        return folder


def opener(place: Elsewhere) -> Opener:
    """The opener of a place."""
    return place.open


def old_pythons() -> dict[str, str]:
    """Interpreters of this machine that are older than ours, by version, as far as there are any.

    `$DDTREE_OLD_PYTHONS` names more, separated like a PATH.
    """
    named = os.environ.get("DDTREE_OLD_PYTHONS", "").split(os.pathsep)
    found: dict[str, str] = {}
    for minor in (8, 9, 10):
        inside = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
        near = [shutil.which(f"python3.{minor}"), *map(str, inside)]
        near += [name for name in named if name.endswith(f"python3.{minor}")]
        first = next((path for path in near if path and "shims" not in path), None)
        if first is not None:
            found[f"3.{minor}"] = first
    return found
