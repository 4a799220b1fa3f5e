"""What may draft in the place of a chain drafter, and that no rule knows."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from ..program.opaque import computes
from ..program.reach import Reach, Reached
from ..program.receivers import Receivers, Scope
from ..program.survey import last_name
from ..program.taint import PRODUCER, callee
from .marks import Way

# What runs a draft model: its results are what drafters make tokens of.
_MODELS = frozenset({"model", "forward", "execute_model", PRODUCER})


def drafted_beside(
    reach: Reach, receivers: Receivers, found: Iterable[Reached], leading: Collection[Reached]
) -> list[Way]:
    """Code whose result is returned where a chain drafter's is, and that is none that is known.

    A call that cannot be followed may draft anything. A function that can be drafts more than one
    token sequence if it returns several arrays that it fills side by side, as a tree's tokens and
    links are kept.

    Args:
        reach: what the engine's step reaches.
        receivers: opens the functions' scopes.
        found: the functions in which a chain drafter was found.
        leading: those that lead there.
    """
    drafters = {id(reached.function.node) for reached in found}
    ways: set[Way] = set()
    for reached in leading:
        own = id(reached.function.node) in drafters
        look = _Producers(reach, receivers, reached)
        ways.update(way for way in look.ways(drafters, drafting=own))
    return sorted(ways)


class _Producers:
    """The calls whose results a function returns."""

    def __init__(self, reach: Reach, receivers: Receivers, reached: Reached) -> None:
        self._receivers = receivers
        self._scope: Scope = receivers.scope(reached.function, reached.receiver)
        self._path = reached.function.module.path
        self._targets: dict[int, list[Reached]] = {}
        for edge in reach.edges[reached]:
            self._targets.setdefault(id(edge.site), []).append(edge.target)

    def ways(self, drafters: Collection[int], *, drafting: bool) -> Iterator[Way]:
        """The returned calls that may draft something else; a dispatcher's are looked at less."""
        for returned in self._scope.mentions.returns:
            for call in self._calls(returned.value, frozenset()) if returned.value else ():
                targets = self._targets.get(id(callee(call)), [])
                others = [one for one in targets if id(one.function.node) not in drafters]
                if not targets and (drafting or self._is_imported(call)):
                    yield Way(self._path, call.lineno, ast.unparse(call.func), opaque=True)
                for other in others:
                    if _fills_several(self._receivers, other):
                        line, module = other.function.node.lineno, other.function.module
                        yield Way(module.path, line, other.function.symbol)

    def _calls(self, value: ast.expr, seen: frozenset[str]) -> Iterator[ast.Call]:
        """The calls that make a value, through names, methods of arrays and parts."""
        match value:
            case ast.Name(id=name) if name not in seen:
                for made in self._scope.locals.get(name, ()):
                    yield from self._calls(made, seen | {name})
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    yield from self._calls(part, seen)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._calls(body, seen)
                yield from self._calls(orelse, seen)
            case ast.Subscript(value=base) | ast.Attribute(value=base):
                yield from self._calls(base, seen)
            case ast.Call():
                yield from self._of_call(value, seen)

    def _of_call(self, call: ast.Call, seen: frozenset[str]) -> Iterator[ast.Call]:
        if id(callee(call)) in self._targets:
            yield call
        elif computes(self._receivers, self._scope, call):
            for argument in call.args:
                yield from self._calls(argument, seen)
        elif last_name(call.func) in _MODELS:
            return
        elif isinstance(call.func, ast.Attribute) and not self._is_imported(call):
            # A method of an array that was made here, or of what nothing is known of.
            yield from self._calls(call.func.value, seen)
        else:
            yield call

    def _is_imported(self, call: ast.Call) -> bool:
        root: ast.expr = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return False
        known = self._scope.imports.get(root.id) or self._scope.module.imports.get(root.id)
        program = self._receivers.program
        return known is not None and not program.is_inside(known.module)


def _fills_several(receivers: Receivers, reached: Reached) -> bool:
    """Whether a function returns several arrays or lists that it fills element by element."""
    survey = receivers.survey(reached.function)
    filled = set(survey.outline.stored) | {
        call.func.value.id
        for call in survey.calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and isinstance(call.func.value, ast.Name)
    }
    for returned in survey.returns:
        if isinstance(returned.value, ast.Tuple):
            names = [one for one in map(_base, returned.value.elts) if one in filled]
            if len(names) > 1:
                return True
    return False


def _base(value: ast.expr) -> str:
    """The array of which a value is made by calls and indices: `stack(tokens)`, `tokens[:n]`."""
    while True:
        match value:
            case ast.Call(args=[inner, *_]) | ast.Subscript(value=inner):
                value = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                value = inner
            case ast.Name(id=name):
                return name
            case _:
                return ""
