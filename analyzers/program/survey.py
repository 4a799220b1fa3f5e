"""One pass over a function's `ast`: what it names, and which constructs it is made of."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .module import FunctionNode

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# Fields without code, and annotations: they run nothing, and what they name need not be loaded.
_IDLE = frozenset(
    {"ctx", "annotation", "returns", "type_comment", "type_params", "id", "attr", "arg", "name"}
    | {"names", "module", "level", "kind", "conversion", "asname", "simple", "is_async", "rest"}
    | {"kwd_attrs"}
)
_SAMENESS = (ast.Eq, ast.NotEq, ast.Is, ast.In)
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
        moving: whether a loop looks something up by a name that it carries along.
        rereading: whether a loop reads, by index, what it writes.
        bounding: whether a `range` runs as far as something that a loop carries along.
        stored: the last parts of the names of what is written by index, or by `out=`.
        looped_calls: the last parts of the names that are called in loops.
        leaves: whether a loop can end early, or skips the rest by a flag that it sets.
        loop_names: the names that loops read; attributes of `self` as `self.name`.
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
    rereading: bool
    bounding: bool
    stored: frozenset[str]
    looped_calls: frozenset[str]
    leaves: bool
    loop_names: frozenset[str]


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
        # In how many loops around each name is assigned, at the least and at the most.
        self.outermost: dict[str, int] = {}
        self.innermost: dict[str, int] = {}
        # The names by which loops look something up, index, or ask for sameness.
        self.keys: set[str] = set()
        self.indexed: set[str] = set()
        self.stored: set[str] = set()
        self.rewritten: set[str] = set()
        self.ranged: set[str] = set()
        self.flags: set[str] = set()
        self.loop_names: set[str] = set()
        self.looped_calls: set[str] = set()

    def visit(self, node: Any, depth: int) -> None:
        """Take note of one node, and of how many loops are around it."""
        kind = type(node)
        self.kinds[kind] += 1
        if kind in self.nodes:
            self.nodes[kind].append(node)
        elif kind is ast.AnnAssign:
            self.nodes[ast.Assign].append(node)
        elif kind is ast.AugAssign or kind is ast.NamedExpr:
            self._store([node.target], node.value, node)
        elif kind is ast.withitem and node.optional_vars is not None:
            self._store([node.optional_vars], node.context_expr, node.optional_vars)
        elif kind is ast.arg:
            self._assign(node.arg, 0)
        elif kind is ast.Import or kind is ast.ImportFrom:
            self.imports.append(node)
        elif kind is ast.For or kind is ast.AsyncFor or kind is ast.comprehension:
            self.nodes[ast.Assign].extend(_iterated(node.target, node.iter))
        if kind is ast.Name and type(node.ctx) is ast.Store:
            self._assign(node.id, depth)
        elif kind is ast.Subscript and type(node.ctx) is ast.Store:
            self.stored.add(last_name(node.value))
        elif kind is ast.Call:
            self._written(node, depth)
        if depth:
            self.looped.add(kind)
            self._note(node, kind)

    def _assign(self, name: str, depth: int) -> None:
        self.outermost[name] = min(depth, self.outermost.get(name, depth))
        self.innermost[name] = max(depth, self.innermost.get(name, depth))

    def _store(self, targets: list[ast.expr], value: ast.expr, place: ast.expr) -> None:
        """Note what has the effect of an assignment."""
        self.nodes[ast.Assign].append(ast.copy_location(ast.Assign(targets, value), place))

    def _written(self, call: ast.Call, depth: int) -> None:
        called = last_name(call.func)
        if isinstance(call.func, ast.Attribute) and call.args and fills(called):
            # `rows.append(x)` and `buffer.copy_(x)` put a value into what they are called on.
            for argument in call.args:
                self._store([call.func.value], argument, call)
        if called == "append" and isinstance(call.func, ast.Attribute):
            for name in _names(call.func.value):
                self._assign(name, depth)
        elif called in {"range", "static_range", "prange"}:
            self.ranged.update(name for argument in call.args for name in _names(argument))
        elif call.args and called == "store":
            address = call.args[0]
            while isinstance(address, ast.BinOp):
                address = address.left
            self.stored.add(last_name(address))
        for word in call.keywords:
            if word.arg == "out":
                self.stored.add(last_name(word.value))
                for argument in call.args:
                    self._store([word.value], argument, call)

    def _note(self, node: Any, kind: type[ast.AST]) -> None:
        if kind is ast.Name:
            self.loop_names.add(node.id)
        elif kind is ast.Subscript:
            self.keys.update(_names(node.slice))
            if type(node.value) is ast.Name:
                (self.rewritten if type(node.ctx) is ast.Store else self.indexed).add(node.value.id)
        elif kind is ast.Compare and type(node.ops[0]) in _SAMENESS:
            self.keys.update(_names(node))
        elif kind is ast.Attribute and type(node.value) is ast.Name:
            self.keys.add(node.value.id)
            if node.value.id == "self":
                self.loop_names.add(f"self.{node.attr}")
        elif kind is ast.If:
            self.flags.update(_names(node.test))
        elif kind is ast.Call:
            called = last_name(node.func)
            self.looped_calls.add(called)
            if called in _LOOKUPS:
                self.keys.update(_names(node))

    @property
    def carried(self) -> set[str]:
        """The names that a loop takes from one round to the next: bound before it and in it."""
        return {name for name, least in self.outermost.items() if least < self.innermost[name]}


def survey(function: FunctionNode) -> Survey:
    """Sort the nodes of a function and outline it, in one pass.

    `ast.walk` visits every context and asks each value for its type; leaving out what holds no
    code takes a quarter of the time, and this pass is much of what an inspection does.
    """
    seen = _Pass()
    stack: list[tuple[Any, int]] = [(function, 0)]
    while stack:
        node, depth = stack.pop()
        seen.visit(node, depth)
        # What a loop runs over is read outside of it, but decides what is inside.
        depth += type(node) in _LOOPS
        stack.extend([(part, depth) for part in parts_of(node)])
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


_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of node that hold code."""
    known = _PARTS.get(kind)
    if known is None:
        plain = issubclass(kind, ast.Constant | ast.Global | ast.Nonlocal)
        fields = () if plain or issubclass(kind, ast.Import | ast.ImportFrom) else kind._fields
        known = _PARTS[kind] = tuple(field for field in fields if field not in _IDLE)
    return known


def parts_of(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that are code: `ast.iter_child_nodes` without contexts, and quicker."""
    found: list[ast.AST] = []
    for field in _parts(type(node)):
        value = getattr(node, field, None)
        if type(value) is list:
            found.extend(item for item in value if item is not None)
        elif value is not None:
            found.append(value)
    return found


def walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all code below it, in no particular order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(parts_of(current))


def _outline(function: FunctionNode, seen: _Pass) -> Outline:
    called = frozenset(last_name(call.func) for call in seen.nodes[ast.Call])
    carried = seen.carried
    used = {name.id for name in seen.nodes[ast.Name]}
    return Outline(
        sum(seen.kinds[kind] for kind in _LOOPS),
        seen.kinds[ast.For] + seen.kinds[ast.AsyncFor],
        frozenset(seen.looped),
        frozenset(seen.kinds),
        seen.kinds[ast.Subscript],
        called,
        frozenset(used | {one.attr for one in seen.nodes[ast.Attribute]}),
        any(_calls_itself(call.func, function.name) for call in seen.nodes[ast.Call]),
        bool(carried & (seen.keys | seen.indexed)),
        bool(seen.rewritten & seen.indexed or carried & (seen.indexed | seen.keys)),
        bool(carried & seen.ranged),
        frozenset(seen.stored),
        frozenset(seen.looped_calls),
        bool({ast.Break, ast.Return, ast.While} & seen.looped or seen.kinds[ast.While])
        or bool(seen.flags & carried),
        frozenset(seen.loop_names),
    )


def fills(called: str) -> bool:
    """Whether a method of that name puts what it is given into its object."""
    return called in {"append", "extend"} or (called.endswith("_") and not called.startswith("_"))


def _names(node: ast.AST) -> Iterator[str]:
    if type(node) is ast.Name:
        yield node.id
        return
    for inner in walk_code(node):
        if type(inner) is ast.Name:
            yield inner.id


def _calls_itself(called: ast.expr, name: str) -> bool:
    if isinstance(called, ast.Attribute):
        own = isinstance(called.value, ast.Name) and called.value.id == "self"
        return own and called.attr == name
    return isinstance(called, ast.Name) and called.id == name


def last_name(function: ast.expr) -> str:
    """The last part of the name of what is called: `store` of `tl.store`, `f` of `f[grid]`."""
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
