"""One pass over a function's `ast`: what it names, and which constructs it is made of."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .module import FunctionNode

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# Calls that look up or compare without an operator.
_LOOKUPS = frozenset({"get", "eq", "ne", "gather", "load", "index_select", "take_along_dim"})


@dataclass(frozen=True, slots=True)
class Outline:
    """Which constructs occur in a function, and the names that it uses and calls.

    Args:
        loops: how many loops there are.
        fors: how many of them are `for`.
        looped: the kinds of nodes inside loops (and in the condition of a `while`).
        operators: the kinds of nodes anywhere, operators and comparisons among them.
        subscripts: how many elements are read or written.
        called: the last parts of the names that are called.
        names: all names and attributes.
        recursive: whether the function calls one of its own name.
        moving: whether a loop assigns a name by which it also looks something up.
    """

    loops: int
    fors: int
    looped: frozenset[type[ast.AST]]
    operators: frozenset[type[ast.AST]]
    subscripts: int
    called: frozenset[str]
    names: frozenset[str]
    recursive: bool
    moving: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """The nodes of one function that name something, each kind in source order, and its outline."""

    names: tuple[ast.Name, ...]
    attributes: tuple[ast.Attribute, ...]
    calls: tuple[ast.Call, ...]
    stores: tuple[ast.Assign | ast.AnnAssign, ...]
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    returns: tuple[ast.Return, ...]
    outline: Outline


class _Pass:
    """The running state of a survey."""

    def __init__(self) -> None:
        self.kinds: Counter[type[ast.AST]] = Counter()
        self.looped: set[type[ast.AST]] = set()
        self.nodes: dict[type[ast.AST], list[Any]] = {
            kind: [] for kind in (ast.Name, ast.Attribute, ast.Call, ast.Assign, ast.Return)
        }
        self.imports: list[ast.Import | ast.ImportFrom] = []
        # Names that loops assign, and names by which they look something up or ask for sameness.
        self.assigned: set[str] = set()
        self.keys: set[str] = set()

    def visit(self, node: Any, inside: bool) -> None:
        """Take note of one node; `inside` says whether a loop is around it."""
        kind = type(node)
        self.kinds[kind] += 1
        if kind in self.nodes:
            self.nodes[kind].append(node)
        elif kind is ast.AnnAssign or kind is ast.AugAssign or kind is ast.NamedExpr:
            if kind is ast.AnnAssign:
                self.nodes[ast.Assign].append(node)
            if inside:
                self.assigned.update(_names(node.target))
        elif kind is ast.Import or kind is ast.ImportFrom:
            self.imports.append(node)
        elif kind is ast.For or kind is ast.AsyncFor or kind is ast.comprehension:
            self.nodes[ast.Assign].extend(_iterated(node.target, node.iter))
        if inside:
            self.looped.add(kind)
            self._note(node, kind)

    def _note(self, node: Any, kind: type[ast.AST]) -> None:
        if kind is ast.Assign:
            for target in node.targets:
                self.assigned.update(_names(target))
        elif kind is ast.Subscript:
            self.keys.update(_names(node.slice))
            self.keys.update(_names(node.value))
        elif kind is ast.Compare:
            self.keys.update(_names(node))
        elif kind is ast.Call and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"append", "add"}:
                self.assigned.update(_names(node.func.value))
            elif node.func.attr in _LOOKUPS:
                self.keys.update(_names(node))


def survey(function: FunctionNode) -> Survey:
    """Sort the nodes of a function and outline it, in one pass.

    `ast.walk` asks every node for its field names; reading the instance dictionaries instead takes
    a third of the time, and this pass is most of what an inspection does.
    """
    seen = _Pass()
    stack: list[tuple[Any, bool]] = [(function, False)]
    while stack:
        node, inside = stack.pop()
        seen.visit(node, inside)
        inside = inside or type(node) in _LOOPS
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                stack.append((value, inside))
            elif isinstance(value, list):
                stack.extend((item, inside) for item in value if isinstance(item, ast.AST))
    nodes = {kind: tuple(sorted(found, key=_position)) for kind, found in seen.nodes.items()}
    return Survey(
        nodes[ast.Name],
        nodes[ast.Attribute],
        nodes[ast.Call],
        nodes[ast.Assign],
        tuple(seen.imports),
        nodes[ast.Return],
        _outline(function, seen),
    )


def _outline(function: FunctionNode, seen: _Pass) -> Outline:
    called = frozenset(_last_name(call.func) for call in seen.nodes[ast.Call])
    used = {name.id for name in seen.nodes[ast.Name]}
    return Outline(
        sum(seen.kinds[kind] for kind in _LOOPS),
        seen.kinds[ast.For] + seen.kinds[ast.AsyncFor],
        frozenset(seen.looped),
        frozenset(seen.kinds),
        seen.kinds[ast.Subscript],
        called,
        frozenset(used | {one.attr for one in seen.nodes[ast.Attribute]}),
        function.name in called,
        bool(seen.assigned & seen.keys),
    )


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _iterated(target: ast.expr, source: ast.expr) -> Iterator[ast.Assign]:
    """What is iterated over reaches the loop's variables like an assignment.

    A counter of `enumerate` gets nothing, and the variables of `zip` each get their own.
    """
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
        parts = target.elts if isinstance(target, ast.Tuple) else []
        plain = not any(isinstance(argument, ast.Starred) for argument in source.args)
        if source.func.id == "range":
            return
        if source.func.id == "enumerate" and len(parts) == 2 and source.args:
            yield from _iterated(parts[1], source.args[0])
            return
        if source.func.id == "zip" and plain and len(parts) == len(source.args):
            for part, argument in zip(parts, source.args, strict=True):
                yield from _iterated(part, argument)
            return
    bound = ast.Assign(targets=[target], value=source)
    yield ast.copy_location(bound, target)


def _position(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset
