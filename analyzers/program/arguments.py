"""Which parameters of the functions that one calls take over what it follows."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from .module import FunctionNode
from .program import ClassRef
from .reach import Edge, Reached
from .receivers import Receivers, Scope
from .taint import Flow, callee, is_tainted
from .values import positional


def passed(
    edges: list[Edge], reached: Reached, receivers: Receivers, names: set[str], flow: Flow
) -> Iterable[tuple[Reached, set[str]]]:
    """Every callee that is handed logits, with the parameters that hold them there."""
    scope = receivers.scope(reached.function, reached.receiver)
    calls = {id(callee(call)): call for call in scope.mentions.calls}
    marks = reached.function.node.decorator_list
    decorators = {id(node) for mark in marks for node in ast.walk(mark)}
    handed = {
        id(argument): call
        for call in scope.mentions.calls
        for argument in [*call.args, *(word.value for word in call.keywords)]
    }
    holding: dict[int, bool] = {}
    for edge in edges:
        if edge.wrap is not None:
            own = positional(reached.function.node)
            taken = {name for name, place in edge.wrap.handed if own[place] in names}
            if taken:
                yield edge.target, taken
            continue
        call = calls.get(id(edge.site))
        if call is not None and id(edge.site) not in decorators:
            # One call leads to as many functions as its receiver may be objects.
            if id(call) not in holding:
                holding[id(call)] = _is_given(call, names, flow)
            if not holding[id(call)]:
                continue
            spread = spread_out(call, scope)
            named = _named(scope, receivers, call)
            parameters = _parameters(spread, edge.target, names, flow, named)
            if parameters:
                yield edge.target, parameters
        elif names and id(edge.site) in decorators:
            # A decorator wraps the function or launches a kernel with its arguments.
            yield edge.target, _all_parameters(edge.target)
        elif id(edge.site) in handed and _parameters(
            handed[id(edge.site)], edge.target, names, flow, False
        ):
            yield edge.target, _all_parameters(edge.target)


def _is_given(call: ast.Call, names: set[str], flow: Flow) -> bool:
    """Whether any argument of a call holds what is followed."""
    values = [*call.args, *(word.value for word in call.keywords)]
    return any(is_tainted(value, names, flow) for value in values)


def spread_out(call: ast.Call, scope: Scope) -> ast.Call:
    """A call with the elements of a tuple in the place of `*arguments`, if it is made once."""
    arguments: list[ast.expr] = []
    for argument in call.args:
        made = []
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name):
            made = scope.locals.get(argument.value.id, [])
        tuples = [one for one in made if isinstance(one, ast.Tuple)]
        arguments += tuples[0].elts if len(made) == len(tuples) == 1 else [argument]
    return ast.Call(call.func, arguments, call.keywords)


def parameters_of(call: ast.Call, target: Reached, names: set[str]) -> set[str]:
    """The parameters of a function that a call hands what some names hold."""
    flow = Flow(seeded=False, decisions=True, results=frozenset())
    return _parameters(call, target, names, flow, named=False)


def _named(scope: Scope, receivers: Receivers, call: ast.Call) -> bool:
    """Whether a method is called as `Class.method(instance, ...)`."""
    if not isinstance(call.func, ast.Attribute):
        return False
    return isinstance(receivers.resolve(scope, call.func.value), ClassRef)


def matched(
    call: ast.Call, target: Reached, *, named: bool = False
) -> Iterator[tuple[str, ast.expr]]:
    """The parameters of a function with what a call gives them; a spread value goes to many.

    Args:
        call: the call.
        target: what it calls.
        named: a method is called as `Class.method(instance, ...)`.
    """
    node = target.function.node
    names = _taking(target, named)
    rest = node.args.vararg.arg if node.args.vararg else None
    for place, value in enumerate(call.args):
        name = names[place] if place < len(names) else rest
        if isinstance(value, ast.Starred):
            yield from ((each, value.value) for each in names[place:])
        elif name is not None:
            yield name, value
    for word in call.keywords:
        if word.arg is not None:
            yield word.arg, word.value
        else:
            yield from ((each, word.value) for each in names)


def _parameters(
    call: ast.Call, target: Reached, names: set[str], flow: Flow, named: bool
) -> set[str]:
    own = _taking(target, named)
    vararg = target.function.node.args.vararg
    found: set[str] = set()
    for place, value in enumerate(call.args):
        if not is_tainted(value, names, flow):
            continue
        if isinstance(value, ast.Starred):
            # What is spread out is taken by all that follow.
            rest = set(own[:place]) if flow.results is not None else set()
            return _all_parameters(target) - rest
        if place < len(own):
            found.add(own[place])
        elif vararg is not None:
            found.add(vararg.arg)
    for word in call.keywords:
        if is_tainted(word.value, names, flow):
            if word.arg is not None:
                found.add(word.arg)
            elif flow.results is None:
                return _all_parameters(target)
    return found


def _taking(target: Reached, named: bool) -> list[str]:
    """The parameters that the arguments of a call fill, in order."""
    node = target.function.node
    bound = target.function.owner is not None and _takes_itself(node, named)
    return positional(node)[1:] if bound else positional(node)


def _takes_itself(method: FunctionNode, named: bool) -> bool:
    """Whether Python hands a method its instance or class before the arguments of the call."""
    marks = {mark.id for mark in method.decorator_list if isinstance(mark, ast.Name)}
    if "staticmethod" in marks:
        return False
    return "classmethod" in marks or method.name == "__init__" or not named


def _all_parameters(target: Reached) -> set[str]:
    """All parameters, also those of functions defined inside (a decorator's wrapper)."""
    return set(_every_parameter(target.function.node))


@lru_cache(maxsize=1 << 12)
def _every_parameter(function: FunctionNode) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arguments):
            every = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
            found.update(argument.arg for argument in every if argument is not None)
    return frozenset(found - {"self", "cls"})
