"""Calls that hand the target's logits to code that cannot be followed.

Where a chain is found, such a call beside it may be the verifier that really decides: then the
chain alone proves nothing.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from .dataflow import Region
from .program import Program
from .reach import Reach, Reached
from .receivers import Receivers, Scope
from .taint import MODULES, holds_logits

# Packages whose decorators compile, trace or check a function, and run it all the same.
HARMLESS = frozenset({"torch", "triton", "numpy", "numba", "pydantic", "typing_extensions", "attr"})


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


def opaque_decorators(
    program: Program, functions: Iterable[Reached], missing: Collection[str]
) -> Iterator[OpaqueCall]:
    """Decorators that packages bring whose code is not at hand: what they wrap may never run.

    Args:
        program: the code at hand.
        functions: whose decorators are looked at.
        missing: packages that are known not to be there, so that what stands in for them is used.
    """
    for reached in functions:
        module = reached.function.module
        for mark in reached.function.node.decorator_list:
            root = mark.func if isinstance(mark, ast.Call) else mark
            while isinstance(root, ast.Attribute):
                root = root.value
            bound = module.imports.get(root.id) if isinstance(root, ast.Name) else None
            if bound is None or program.is_inside(bound.module):
                continue
            top = bound.module.partition(".")[0]
            if top in HARMLESS or top in missing or top in sys.stdlib_module_names:
                continue
            if program.imported(bound.module, bound.attribute) is None:
                yield OpaqueCall(module.path, mark.lineno, ast.unparse(mark))


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
