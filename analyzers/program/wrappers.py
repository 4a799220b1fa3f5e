"""What runs in place of a decorated function: the wrappers that its decorators put around it.

A wrapper that only hands its arguments on is left out: what it hands them to takes its place.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .evaluate import Evaluator
from .module import FunctionNode
from .program import FunctionRef, Program
from .values import Closure, Instance, Value, positional


@dataclass(frozen=True, slots=True)
class Wrap:
    """A function that is handed the arguments of a decorated one.

    Attributes:
        function: it; what its closure and its parameters are known to hold is bound.
        site: the decorator.
        handed: which of its parameters takes the argument at which place of the decorated
            function, whose instance is at place 0.
        forwards: it hands everything on to another wrapper of the same function.
    """

    function: FunctionRef
    site: ast.expr
    handed: tuple[tuple[str, int], ...]
    forwards: bool = False


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The wrappers of one function, and the decorators that were followed to find them."""

    wraps: tuple[Wrap, ...] = ()
    followed: frozenset[int] = frozenset()


_NONE = Wrapped()


class Wrappers:
    """The wrappers of the functions of a program; each function is looked at once."""

    def __init__(self, program: Program) -> None:
        self._evaluator = Evaluator(program)
        # Functions are kept beside what is known of them, so that their identities stay theirs.
        self._known: dict[int, tuple[FunctionRef, Wrapped]] = {}
        self._replaced: dict[int, tuple[Wrap, ...]] = {}

    def of(self, function: FunctionRef) -> Wrapped:
        """What a function's own decorators put around it, and what replaces it on its instance."""
        if function.wraps is not None:
            return _NONE
        key = id(function.node)
        found = self._decorated(key, function) if function.node.decorator_list else _NONE
        replaced = self._replaced.get(key)
        return replace(found, wraps=(*found.wraps, *replaced)) if replaced else found

    def put(self, function: FunctionRef, wrap: Wrap) -> None:
        """From here on, `wrap` runs in place of a method on the instances that an engine holds."""
        known = self._replaced.get(id(function.node), ())
        self._replaced[id(function.node)] = (*known, wrap)

    def is_replaced(self, function: FunctionRef) -> bool:
        """Whether something was put in the place of a function."""
        return id(function.node) in self._replaced

    def around(self, function: FunctionRef, value: Value) -> Iterator[Wrap]:
        """What runs where a value that was made of a function takes its name."""
        # It is shown where the function is defined, since its callers do not mention it.
        site = ast.copy_location(ast.Name(function.node.name, ast.Load()), function.node)
        yield from self._around(function, value, site)

    def _decorated(self, key: int, function: FunctionRef) -> Wrapped:
        if key not in self._known:
            self._known[key] = (function, self._look(function))
        return self._known[key][1]

    def _look(self, function: FunctionRef) -> Wrapped:
        values: Sequence[Value] = [Closure(function)]
        followed: set[int] = set()
        wraps: list[Wrap] = []
        for mark in reversed(function.node.decorator_list):
            decorators = self._evaluator.expression(function.module, mark, {})
            made = [
                one
                for decorator in decorators
                for value in values
                for one in self._evaluator.call(decorator, [value], {})
                if isinstance(one, Closure | Instance)
            ]
            if made:
                values = made
                around = [wrap for value in made for wrap in self._around(function, value, mark)]
                wraps += around
                # One that hands the function back may still keep what it is given.
                if around or not _gives_functions(mark):
                    followed.update(id(node) for node in ast.walk(_callee(mark)))
        return Wrapped(tuple(wraps), frozenset(followed))

    def _around(self, function: FunctionRef, value: Value, mark: ast.expr) -> Iterator[Wrap]:
        wrapper = self._closure(value)
        if wrapper is None or wrapper.function.node is function.node:
            return
        site = _callee(mark)
        names = positional(wrapper.function.node)[len(wrapper.first) :]
        places = {name: place for place, name in enumerate(names)}
        through = list(self._handed_on(function, wrapper, places, site))
        yield from through
        if not _is_lambda(wrapper) and not self._is_idle(function, wrapper):
            handed = [*places.items(), *rest_of(wrapper.function.node, len(names), function)]
            # What it hands everything on to is followed with its own arguments, not from here.
            known = self._evaluator.enclosed(wrapper)
            copied = bound(wrapper.function, known, function, drop=bool(through))
            yield Wrap(copied, site, tuple(handed), forwards=bool(through))

    def _is_idle(self, function: FunctionRef, wrapper: Closure) -> bool:
        """Whether a wrapper certainly returns what the function alone returns."""
        known = self._evaluator.enclosed(wrapper)
        body = list(wrapper.function.node.body)
        while body:
            match body.pop(0):
                case ast.If(test=test, body=then, orelse=orelse):
                    decided = self._evaluator.decide(wrapper.function.module, test, known)
                    if decided is None:
                        return False
                    body = [*(then if decided else orelse), *body]
                case ast.Return(value=ast.Call(func=ast.Name(id=name))):
                    held = known.get(name)
                    return isinstance(held, Closure) and held.function.node is function.node
                case ast.Return():
                    return False
        return False

    def _handed_on(
        self, function: FunctionRef, wrapper: Closure, places: dict[str, int], site: ast.expr
    ) -> Iterator[Wrap]:
        """The functions to which a wrapper hands all of its arguments on."""
        node = wrapper.function.node
        star = node.args.vararg.arg if node.args.vararg else None
        known = self._evaluator.enclosed(wrapper)
        for call in [one for one in ast.walk(node) if isinstance(one, ast.Call)]:
            if star is None or not any(_is_star(argument, star) for argument in call.args):
                continue
            for value in self._evaluator.expression(wrapper.function.module, call.func, known):
                target = self._closure(value)
                if target is None or target.function.node is function.node:
                    continue
                given: list[int | Value | None] = [*target.first]
                for argument in call.args:
                    if _is_star(argument, star):
                        given += range(len(places), len(positional(function.node)))
                    elif isinstance(argument, ast.Name) and argument.id in places:
                        given.append(places[argument.id])
                    else:
                        module = wrapper.function.module
                        found = self._evaluator.expression(module, argument, known)
                        given.append(found[0] if found else None)
                yield _wrap(target, given, function, site)

    def _closure(self, value: Value) -> Closure | None:
        if isinstance(value, Instance):
            return self._evaluator.method(value, "__call__")
        return value if isinstance(value, Closure) else None


def _wrap(
    target: Closure, given: Sequence[int | Value | None], function: FunctionRef, site: ast.expr
) -> Wrap:
    node = target.function.node
    names = positional(node)
    handed: list[tuple[str, int]] = []
    known: dict[str, Value] = dict(target.names)
    star = node.args.vararg.arg if node.args.vararg else None
    for place, value in enumerate(given):
        name = names[place] if place < len(names) else star
        if name is None:
            continue
        if isinstance(value, int):
            handed.append((name, value))
        elif value is not None and place < len(names):
            known[name] = value
    return Wrap(bound(target.function, known, function), site, tuple(handed))


def bound(
    function: FunctionRef, known: dict[str, Value], wraps: FunctionRef, *, drop: bool = False
) -> FunctionRef:
    """A copy of a function for which its names hold functions; `drop` keeps only the wrapped."""
    read = {node.id for node in ast.walk(function.node) if isinstance(node, ast.Name)}
    held = {
        name: value.function
        for name, value in known.items()
        if isinstance(value, Closure) and name in read
        if not drop or value.function.node is wraps.node
    }
    # A node of its own, since what is known of a function is kept by its node.
    node: FunctionNode = copy.deepcopy(function.node)
    return FunctionRef(function.module, node, function.owner, held, wraps)


def rest_of(node: FunctionNode, first: int, function: FunctionRef) -> list[tuple[str, int]]:
    """The places of a wrapped function's arguments from `first` on that `*args` takes."""
    if node.args.vararg is None:
        return []
    places = range(first, len(positional(function.node)))
    return [(node.args.vararg.arg, place) for place in places]


def _callee(mark: ast.expr) -> ast.expr:
    return mark.func if isinstance(mark, ast.Call) else mark


def _gives_functions(mark: ast.expr) -> bool:
    given = (
        [*mark.args, *(word.value for word in mark.keywords)] if isinstance(mark, ast.Call) else []
    )
    return not isinstance(mark, ast.Call) or not all(isinstance(one, ast.Constant) for one in given)


def _is_star(argument: ast.expr, name: str) -> bool:
    if not isinstance(argument, ast.Starred):
        return False
    return isinstance(argument.value, ast.Name) and argument.value.id == name


def _is_lambda(wrapper: Closure) -> bool:
    return wrapper.function.node.name == "<lambda>"
