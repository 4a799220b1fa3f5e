"""Start-up of processes that run a vLLM whose compiled extension does not load beside this torch.

Releases before 0.27 were compiled for torch 2.11. What they need of their extension on a CPU has
stand-ins in `_OPERATORS`, and a package that their model loader imports is an empty one. Some of
them give the CPU's forms of kernels more than these forms take (0.20.1, 0.23.0), so that no
speculation would start, with trees or without: what is not taken is left out.
Python imports this module by itself where its folder is on the path.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

_OPERATORS = ("ddtree_operators", "ddtree_sampling_operators")
# Reads a file format that no test has.
_EMPTY = "gguf"
_KERNELS = "vllm.utils.cpu_triton_utils"


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


class _Kernels(importlib.abc.MetaPathFinder):
    """Finds the CPU's forms of kernels."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _KERNELS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads them so that they are given no more than they take."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        for value in vars(module).values():
            if type(value).__name__ == "_FuncWrapper":
                value.func = _forgiving(value.func)


def _forgiving(function: Callable[..., Any]) -> Callable[..., Any]:
    known = inspect.signature(function).parameters

    def called(*arguments: Any, **named: Any) -> Any:
        kept = {key: named[key] for key in named if key in known}
        return function(*arguments[: len(known) - len(kept)], **kept)

    return called


def _install() -> None:
    sys.meta_path.append(_Empty())
    sys.meta_path.insert(0, _Kernels())
    # Beside this file, which is no part of a package where the engine runs.
    for module in map(importlib.import_module, _OPERATORS):
        for name, function in module.OPERATORS.items():
            setattr(torch.ops._C, name, function)
    # Later releases do not call these on a CPU, where they raise.
    for name in ("synchronize", "empty_cache"):
        setattr(torch.accelerator, name, lambda *arguments: None)


_install()
