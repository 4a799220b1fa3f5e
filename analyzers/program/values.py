"""The values that decorators are evaluated over, and how they are compared and given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .module import FunctionNode, Module
from .program import ClassRef, FunctionRef, ModuleRef


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A literal."""

    value: object


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function with the values of the names around it."""

    function: FunctionRef
    names: Mapping[str, Value] = field(default_factory=dict)
    # Values that it is called with before all others: a bound instance, or those of `partial`.
    first: tuple[Value | None, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A dictionary that is written out in a module."""

    module: Module
    node: ast.Dict
    names: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A list or a tuple that is written out."""

    module: Module
    elements: tuple[ast.expr, ...]
    names: Mapping[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """An object of a class, with the attributes that its constructor sets."""

    cls: ClassRef
    attributes: dict[str, Value]


@dataclass(frozen=True, slots=True, eq=False)
class Copying:
    """What `functools.wraps(f)` makes: a decorator that hands back what it is given."""


Value = Constant | Closure | Table | Row | Instance | Copying | ClassRef | ModuleRef


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """A value that is given to an attribute of something; what is None is not known."""

    holder: Value | None
    name: str
    value: Value | None


Words = Mapping[str, Value]


def positional(function: FunctionNode) -> list[str]:
    """The parameters that can be given by position, in order."""
    return [one.arg for one in [*function.args.posonlyargs, *function.args.args]]


def named_only(function: FunctionNode) -> list[str]:
    every = [*function.args.kwonlyargs, function.args.vararg, function.args.kwarg]
    return [one.arg for one in every if one is not None]


def names_around(closure: Closure) -> dict[str, Value]:
    """The names that a function encloses, less those that its own parameters hide."""
    node = closure.function.node
    hidden = {*positional(node), *named_only(node)}
    return {name: value for name, value in closure.names.items() if name not in hidden}


def texts(values: Iterable[Value | None]) -> list[str]:
    """Those of some values that are strings."""
    known = (value.value for value in values if isinstance(value, Constant))
    return [value for value in known if isinstance(value, str)]


def matched(parameters: Sequence[str], arguments: Sequence[Value | None]) -> dict[str, Value]:
    pairs = zip(parameters, arguments, strict=False)
    return {name: value for name, value in pairs if value is not None}


def defaults(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    names = positional(function)
    count = len(function.args.defaults)
    yield from zip(names[len(names) - count :], function.args.defaults, strict=True)
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def as_function(node: ast.Lambda) -> ast.FunctionDef:
    """A lambda as a function that returns its body."""
    body = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef(name="<lambda>", args=node.args, body=[body], decorator_list=[])
    return ast.copy_location(made, node)


def home_of(value: Value, module: Module) -> Module:
    """Where a registry is defined, so that what is registered is looked for around it."""
    if isinstance(value, Closure):
        return value.function.module
    if isinstance(value, Instance):
        return value.cls.module
    return module


def compared(op: ast.cmpop, here: list[Value], there: list[Value]) -> bool | None:
    left, right = here[0], there[0]
    if isinstance(right, Table) and isinstance(left, Constant):
        keys = [key.value for key in right.node.keys if isinstance(key, ast.Constant)]
        if left.value in keys:
            return {ast.In: True, ast.NotIn: False}.get(type(op))
        return None
    if not isinstance(right, Constant):
        return None
    if not isinstance(left, Constant):
        # A function or an object is never None.
        same = {ast.Is: False, ast.IsNot: True} if right.value is None else {}
        return same.get(type(op))
    if isinstance(op, ast.Eq | ast.Is):
        return left.value == right.value
    if isinstance(op, ast.NotEq | ast.IsNot):
        return left.value != right.value
    return None


def matches_case(case: ast.match_case, known: list[Value]) -> bool | None:
    pattern = case.pattern
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return True if case.guard is None else None
    options = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    values = [
        option.value.value
        for option in options
        if isinstance(option, ast.MatchValue) and isinstance(option.value, ast.Constant)
    ]
    if len(values) < len(options) or len(known) != 1 or not isinstance(known[0], Constant):
        return None
    return known[0].value in values and case.guard is None
