"""The modules of a plug-in: what it loads, what these import, and what their strings name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ..program.module import Module, imported_names
from ..program.program import Program

# A plug-in with more modules is looked at no further.
MAX_MODULES = 300
# `package.module.Class` or `package.module:Class` in a string.
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+)+(:\w+)?\Z")


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
    for _, name in dotted_strings(module):
        yield name
        yield name.rpartition(".")[0]


def dotted_strings(module: Module) -> Iterator[tuple[int, str]]:
    """The strings of a module that can name a class or a module, with their lines."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant):
            text = node.value
            if isinstance(text, str) and _DOTTED.match(text):
                yield node.lineno, text.replace(":", ".")
