"""Calls that hand the target's logits to code that cannot be followed.

Where a chain is found, such a call beside it may be the verifier that really decides: then the
chain alone proves nothing.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .dataflow import Region
from .reach import Reach, Reached
from .receivers import Receivers, Scope
from .taint import MODULES, holds_logits


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A call whose target is looked up at run time or lies outside of the code."""

    file: str
    line: int
    text: str


def opaque_calls(
    reach: Reach, receivers: Receivers, region: Region, functions: Iterable[Reached]
) -> Iterator[OpaqueCall]:
    """The calls in some functions that take logits and lead to no function that is known."""
    for reached in functions:
        names = region.tainted.get(reached)
        if not names:
            continue
        scope = receivers.scope(reached.function, reached.receiver)
        known = {id(edge.site) for edge in reach.edges[reached]}
        for call in scope.mentions.calls:
            arguments = [*call.args, *(word.value for word in call.keywords)]
            if not any(holds_logits(value, names) for value in arguments):
                continue
            if id(call.func) not in known and _is_opaque(scope, receivers, call.func, names):
                text = ast.unparse(call.func)
                yield OpaqueCall(reached.function.module.path, call.lineno, text)


def _is_opaque(scope: Scope, receivers: Receivers, called: ast.expr, names: set[str]) -> bool:
    if isinstance(called, ast.Name):
        return _is_opaque_name(scope, receivers, called)
    if isinstance(called, ast.Attribute):
        text = ast.unparse(called)
        if text.startswith("torch.ops."):
            return not text.startswith(("torch.ops.aten.", "torch.ops.prims."))
        # `getattr(self, name)(...)` and an attribute that holds a function of unknown origin.
        own = isinstance(called.value, ast.Name) and called.value.id == "self"
        return own and not list(receivers.types(scope, called))
    if isinstance(called, ast.Subscript):
        # `kernel[grid](...)` launches what is named; a table of functions is looked up.
        return receivers.resolve(scope, called.value) is None and not _is_kernel(scope, called)
    return isinstance(called, ast.Call)


def _is_opaque_name(scope: Scope, receivers: Receivers, name: ast.Name) -> bool:
    """A function that was handed in or made at run time, or that another package brings."""
    if hasattr(builtins, name.id) or name.id in MODULES:
        return False
    if receivers.meanings(scope, name):
        return False
    return name.id in scope.locals or name.id in scope.imports or name.id in scope.module.imports


def _is_kernel(scope: Scope, called: ast.Subscript) -> bool:
    return isinstance(called.slice, ast.Tuple) and isinstance(called.value, ast.Name)
