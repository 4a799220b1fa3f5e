"""The first lines that run on the other side: modules from memory, and an old Python brought up.

The text of this file is sent and run as it is, so it imports nothing of ours.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import threading
import types
from typing import Any

# Where packages that have no folder lie.
PLACE = "<ddtree>/"


class Memory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from their texts; names that end in a dot are packages."""

    def __init__(self, texts: dict[str, str]) -> None:
        """Take the texts by module name."""
        self._texts = texts

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module if it is one of ours."""
        for key, package in ((name, False), (name + ".", True)):
            if key in self._texts:
                spec = importlib.machinery.ModuleSpec(name, self, is_package=package)
                if package:
                    spec.submodule_search_locations = [f"{PLACE}{name}"]
                return spec
        return None

    def get_source(self, name: str) -> str:
        """The text of a module, as every loader of texts gives it."""
        return self._texts[name] if name in self._texts else self._texts[name + "."]

    def listed(self, place: str) -> Any:
        """What lists the modules of a package by its place, for `pkgutil`."""
        if not place.startswith(PLACE):
            raise ImportError(place)
        return Listing(self._texts, place[len(PLACE) :])

    def create_module(self, spec: Any) -> None:
        """The usual module."""

    def exec_module(self, module: Any) -> None:
        """Run its text."""
        name = module.__name__
        # Some name data files beside them, which are never read here.
        module.__file__ = PLACE + name
        text = self.get_source(name)
        exec(compile(text, "<" + name + ">", "exec", dont_inherit=True), vars(module))


class Listing:
    """The modules of one package."""

    def __init__(self, texts: dict[str, str], package: str) -> None:
        """Take all texts and the name of the package."""
        self._all = [name for name in texts if name.rstrip(".").rpartition(".")[0] == package]

    def iter_modules(self, prefix: str = "") -> Any:
        """Name and kind of each, as `pkgutil` wants them."""
        for name in sorted(self._all):
            yield prefix + name.rstrip(".").rpartition(".")[2], name.endswith(".")

    def find_spec(self, name: str, target: Any = None) -> None:
        """Nothing: what finds modules is asked before."""


def modernise(stdlib: list[str]) -> None:
    """Give Python 3.8 to 3.10 what the modules use of later ones.

    Args:
        stdlib: the names of the standard library's modules: those of the near side count, so that
            both sides come to the same result.
    """
    vars(sys)["stdlib_module_names"] = frozenset(stdlib)
    if not hasattr(enum, "StrEnum"):
        vars(enum)["StrEnum"] = _TextEnum
    if sys.hexversion < 0x030A0000:
        vars(dataclasses)["dataclass"] = _without_slots(dataclasses.dataclass)
    if sys.hexversion < 0x030B0000:
        sys.modules["tomllib"] = _project_reader()


# What this class stands in for is new in Python 3.11.
class _TextEnum(str, enum.Enum):  # noqa: UP042
    """`enum.StrEnum` as far as it is used."""

    __str__ = str.__str__


def _without_slots(original: Any) -> Any:
    def dataclass(cls: Any = None, **options: Any) -> Any:
        options.pop("slots", None)
        return original(cls, **options)

    return dataclass


def _project_reader() -> types.ModuleType:
    """A stand-in for `tomllib` that reads the texts of the `[project]` table alone."""
    module = types.ModuleType("tomllib")
    vars(module).update(loads=project, TOMLDecodeError=ValueError)
    return module


def project(text: str) -> dict[str, dict[str, str]]:
    """The texts of the `[project]` table of a pyproject.toml."""
    table: dict[str, str] = {}
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line.partition("#")[0].strip() == "[project]"
        elif inside:
            key, _, value = line.partition("=")
            quoted = value.strip()
            end = quoted.find(quoted[:1], 1)
            if quoted[:1] in ("'", '"') and quoted[:3] not in ("'''", '"""') and end > 0:
                table[key.strip()] = quoted[1:end]
    return {"project": table}


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


def main(texts: dict[str, str], entry: str, request: dict[str, Any]) -> None:
    """Answer on stdout, and end: at once where nobody waits any more, unless it has to `finish`."""
    if request.get("finish"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    else:
        # What hangs on a dead disk is not left behind.
        signal.alarm(request["seconds"])
        # Of the stdin that nobody reads, the end says that the other side has gone.
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    modernise(request["stdlib"])
    memory = Memory(texts)
    sys.meta_path.insert(0, memory)
    sys.path_hooks.insert(0, memory.listed)
    frame = importlib.import_module(entry).reply(request)
    with os.fdopen(1, "wb", closefd=False) as stdout:
        stdout.write(frame)
    # Not by way of the interpreter's end, which would wait for the thread that reads stdin.
    os._exit(0)
