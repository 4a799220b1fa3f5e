"""Cheap facts about a function from its `ast`, by which a rule decides whether to look closer."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..program.module import FunctionNode


@dataclass(frozen=True, slots=True)
class Outline:
    """Which constructs occur in a function, and the last parts of the names that it calls."""

    fors: int
    whiles: int
    compares: int
    subscripts: int
    called: frozenset[str]

    @property
    def loops(self) -> int:
        """How many loops there are of either kind."""
        return self.fors + self.whiles


def outline(function: FunctionNode) -> Outline:
    """Count a function's constructs in one pass."""
    counts: dict[type[Any], int] = {}
    called: set[str] = set()
    stack: list[Any] = [*function.body]
    while stack:
        node = stack.pop()
        kind = type(node)
        counts[kind] = counts.get(kind, 0) + 1
        if kind is ast.Call:
            called.add(_last_name(node.func))
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend(item for item in value if isinstance(item, ast.AST))
    fors = counts.get(ast.For, 0) + counts.get(ast.AsyncFor, 0)
    return Outline(
        fors,
        counts.get(ast.While, 0),
        counts.get(ast.Compare, 0),
        counts.get(ast.Subscript, 0),
        frozenset(called),
    )


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
