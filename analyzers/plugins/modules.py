"""The modules of a plug-in: what it loads, what these import, and what their strings name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ..program.module import Module, imported_names
from ..program.program import Program

# A plug-in with more modules is looked at no further.
MAX_MODULES = 300
# `package.module.Class` or `package.module:Class` in quotes.
_DOTTED = re.compile(rb"[\"']([A-Za-z_]\w*(?:\.\w+)+(?::\w+)?)[\"']")


def own_modules(program: Program, starts: Iterable[Module]) -> list[Module]:
    """Some modules and all of the same packages that they lead to, by imports or by strings."""
    found = {module.name: module for module in starts}
    waiting = list(found.values())
    while waiting and len(found) < MAX_MODULES:
        module = waiting.pop()
        top = module.name.partition(".")[0]
        for name in _leads_to(module):
            other = program.module(name) if name.partition(".")[0] == top else None
            if other is not None and name not in found:
                found[name] = other
                waiting.append(other)
    return list(found.values())


def _leads_to(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for _, bound in imported_names(node, module.package):
                yield bound.module
                yield f"{bound.module}.{bound.attribute}"
    for _, name in dotted_strings(module.source):
        yield name
        yield name.rpartition(".")[0]


def dotted_strings(source: bytes) -> Iterator[tuple[int, str]]:
    """The quoted names in a file that can be those of classes or modules, with their lines."""
    for found in _DOTTED.finditer(source):
        line = source.count(b"\n", 0, found.start()) + 1
        yield line, found[1].decode("ascii", "ignore").replace(":", ".")
