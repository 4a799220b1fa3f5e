"""Methods that are replaced on the objects that an engine holds.

`held.propose = partial(mine, state, held.propose)`, in a method of the engine or in a function that
runs in its place, runs `mine` wherever the engine calls `self.held.propose(...)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .evaluate import Evaluator
from .module import FunctionNode
from .program import ClassRef, FunctionRef, Program
from .receivers import Receivers, Scope
from .values import Closure, Value, positional
from .wrappers import Wrap, bound, rest_of

# Objects of objects are followed so far from the engine.
MAX_PATH = 3


def replacements(
    program: Program, receivers: Receivers, engine: ClassRef
) -> Iterator[tuple[FunctionRef, Wrap]]:
    """Every replaced method, and what runs in its place.

    Args:
        program: the code.
        receivers: the types of its expressions.
        engine: the class whose instance is handed to the methods and their wrappers.
    """
    evaluator = Evaluator(program)
    for function, name in _handed_the_engine(program, receivers, engine):
        for target, value in _stored(function.node, name):
            path = _path(receivers.scope(function, None), target.value, name)
            found = evaluator.expression(function.module, value, {}) if path else []
            closures = [one for one in found if isinstance(one, Closure)]
            for held in _held(receivers, engine, path or ()) if closures else ():
                method = program.method(held, target.attr)
                for closure in closures if method else ():
                    if method is not None and closure.function.node is not method.node:
                        yield method, _wrap(closure, method, target, value)


def _handed_the_engine(
    program: Program, receivers: Receivers, engine: ClassRef
) -> Iterator[tuple[FunctionRef, str]]:
    """Functions that are handed the engine, and the parameter that takes it."""
    for owner in program.ancestry(engine):
        for node in owner.node.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            method = FunctionRef(owner.module, node, owner)
            first = positional(node)[:1]
            if first:
                yield method, first[0]
            followed = receivers.wrappers.is_replaced(method) or _is_edited(method)
            for wrap in receivers.wrappers.of(method).wraps if followed else ():
                for name, place in wrap.handed:
                    if place == 0:
                        yield wrap.function, name


def _is_edited(method: FunctionRef) -> bool:
    """Whether a decorator comes from another package: following all others takes too long."""
    module = method.module
    for mark in method.node.decorator_list:
        root: ast.AST = mark
        while isinstance(root, ast.Call | ast.Attribute):
            root = root.func if isinstance(root, ast.Call) else root.value
        bound = module.imports.get(root.id) if isinstance(root, ast.Name) else None
        if bound is not None and bound.module.partition(".")[0] != module.name.partition(".")[0]:
            return True
    return False


def _stored(function: FunctionNode, engine: str) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Calls, lambdas and names that are stored on other objects; only statements are visited."""
    stack: list[ast.stmt] = list(function.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.Assign):
            made = isinstance(statement.value, ast.Call | ast.Lambda | ast.Name)
            for target in statement.targets if made else ():
                if isinstance(target, ast.Attribute) and not _is_name(target.value, engine):
                    yield target, statement.value
            continue
        for part in ("body", "orelse", "finalbody"):
            stack.extend(getattr(statement, part, ()))


def _path(scope: Scope, holder: ast.expr, engine: str, steps: int = 0) -> tuple[str, ...] | None:
    """The attributes that lead from the engine to an object; None if it is none of these."""
    match holder:
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == engine:
            return (attr,)
        case ast.Attribute(value=base, attr=attr) if steps < MAX_PATH:
            above = _path(scope, base, engine, steps + 1)
            return None if above is None else (*above, attr)
        case ast.Name(id=name) if steps < MAX_PATH:
            found = (_path(scope, one, engine, steps + 1) for one in scope.locals.get(name, ()))
            return next((path for path in found if path is not None), None)
    return None


def _held(receivers: Receivers, engine: ClassRef, path: tuple[str, ...]) -> list[ClassRef]:
    classes = [engine]
    for name in path:
        found = {one.key: one for cls in classes for one in receivers.attribute(cls, name)}
        classes = list(found.values())
    return classes


def method_wrap(closure: Closure, replaced: FunctionRef) -> Wrap:
    """What a class or a module holds in a function's place; it is handed all that was."""
    names = positional(closure.function.node)
    handed = [(name, place) for place, name in enumerate(names[len(closure.first) :])]
    handed = handed[: len(positional(replaced.node))]
    handed += rest_of(closure.function.node, len(handed), replaced)
    site = ast.copy_location(ast.Name(replaced.node.name, ast.Load()), replaced.node)
    return Wrap(bound(closure.function, dict(closure.names), replaced), site, tuple(handed))


def _wrap(closure: Closure, method: FunctionRef, target: ast.Attribute, value: ast.expr) -> Wrap:
    """The replacement as what runs in the method's place; an instance is not handed to it."""
    names = positional(closure.function.node)
    known: dict[str, Value] = dict(closure.names)
    given = value.args[1:] if isinstance(value, ast.Call) else []
    for name, argument in zip(names, given, strict=False):
        # What was there before is handed to it.
        if ast.unparse(argument) == ast.unparse(target):
            known[name] = Closure(method)
    handed = [(name, place + 1) for place, name in enumerate(names[len(closure.first) :])]
    # It is shown where the method is defined, since its callers do not mention it.
    site = ast.copy_location(ast.Name(method.node.name, ast.Load()), method.node)
    return Wrap(bound(closure.function, known, method), site, tuple(handed))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
