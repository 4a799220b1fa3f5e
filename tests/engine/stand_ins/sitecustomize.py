"""Start-up of processes that run a vLLM whose compiled extension does not load beside this torch.

Releases before 0.27 were compiled for torch 2.11. What they need of their extension on a CPU has
stand-ins in `ddtree_operators`, and a package that their model loader imports is an empty one.
Python imports this module by itself where its folder is on the path.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

# Reads a file format that no test has.
_EMPTY = "gguf"


class _Names(types.ModuleType):
    """A module in which every name is a class without members."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the package that is not installed, and anything inside it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name.partition(".")[0] != _EMPTY:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Names(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        del module


sys.meta_path.append(_Empty())
# Beside this file, which is no part of a package where the engine runs.
importlib.import_module("ddtree_operators").install()
