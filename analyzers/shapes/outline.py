"""Cheap facts about a function from its `ast`, by which a rule decides whether to look closer."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ..program.module import FunctionNode

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# Calls that look up or compare without an operator.
_LOOKUPS = frozenset({"get", "eq", "ne"})


@dataclass(frozen=True, slots=True)
class Outline:
    """Which constructs occur in a function, and the names that it uses and calls.

    Args:
        loops: how many loops there are.
        fors: how many of them are `for`.
        looped: the kinds of nodes inside loops (and in the condition of a `while`).
        operators: the kinds of operators and comparisons anywhere.
        subscripts: how many elements are read or written.
        called: the last parts of the names that are called.
        names: all names and attributes.
        recursive: whether the function calls one of its own name.
    """

    loops: int
    fors: int
    looped: frozenset[type[ast.AST]]
    operators: frozenset[type[ast.AST]]
    subscripts: int
    called: frozenset[str]
    names: frozenset[str]
    recursive: bool

    @property
    def looks_in_loops(self) -> bool:
        """Whether a loop compares or looks something up: the least that a walk does."""
        return ast.Compare in self.looped or bool(self.loops and _LOOKUPS & self.called)


def outline(function: FunctionNode) -> Outline:
    """Collect a function's constructs in one pass."""
    kinds: Counter[type[ast.AST]] = Counter()
    looped: set[type[ast.AST]] = set()
    called: set[str] = set()
    used: set[str] = set()
    stack: list[tuple[Any, bool]] = [(statement, False) for statement in function.body]
    while stack:
        node, inside = stack.pop()
        kind = type(node)
        kinds[kind] += 1
        if inside:
            looped.add(kind)
        if kind is ast.Call:
            called.add(_last_name(node.func))
        elif kind is ast.Name:
            used.add(node.id)
        elif kind is ast.Attribute:
            used.add(node.attr)
        inside = inside or kind in _LOOPS
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                stack.append((value, inside))
            elif isinstance(value, list):
                stack.extend((item, inside) for item in value if isinstance(item, ast.AST))
    return Outline(
        sum(kinds[kind] for kind in _LOOPS),
        kinds[ast.For] + kinds[ast.AsyncFor],
        frozenset(looped),
        frozenset(kinds),
        kinds[ast.Subscript],
        frozenset(called),
        frozenset(used),
        function.name in called,
    )


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
