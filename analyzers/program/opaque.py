"""Code that is not at hand: calls that nothing tells about, and decorators from elsewhere."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from .module import Import
from .program import ClassRef, Program
from .reach import Reached
from .receivers import Receivers, Scope
from .taint import MODULES

# Packages whose decorators compile, trace or check a function, and run it all the same.
HARMLESS = frozenset({"torch", "triton", "numpy", "numba", "pydantic", "typing_extensions", "attr"})
# Beside the modules of arrays: parts of Triton under their usual names, and of Python.
_KNOWN = MODULES | {"libdevice", "tldevice", "math", "triton", "operator", "copy", "functools"}
# Builtins that look up or make what they call.
_LOOKUPS = frozenset({"getattr", "eval", "exec", "__import__", "vars", "globals"})
# Parts of Python's library that run code from elsewhere.
_FOREIGN = frozenset({"importlib", "ctypes", "subprocess", "runpy"})


def computes(receivers: Receivers, scope: Scope, call: ast.Call) -> bool:
    """Whether a call that leads into no code at hand only computes, or only makes an object."""
    root = _root(call)
    if root is None:
        return False
    text = ast.unparse(call.func)
    if text.startswith("torch.ops."):
        return text.startswith(("torch.ops.aten.", "torch.ops.prims."))
    if root.id in _KNOWN and root.id not in scope.locals:
        return True
    if isinstance(call.func, ast.Name) and hasattr(builtins, root.id):
        return root.id not in _LOOKUPS
    bound = _import_of(scope, call)
    if bound is not None and (top := bound.module.partition(".")[0]) in sys.stdlib_module_names:
        return top not in _FOREIGN
    return isinstance(receivers.resolve(scope, call.func), ClassRef)


def is_passed_over(receivers: Receivers, scope: Scope, call: ast.Call) -> bool:
    """Whether a call leads into a part of the package that is not followed, such as transport."""
    bound = _import_of(scope, call)
    return bound is not None and receivers.program.is_outside(bound.module)


def is_imported(scope: Scope, call: ast.Call) -> bool:
    """Whether what is called, or whose method is called, is imported."""
    return _import_of(scope, call) is not None


def _import_of(scope: Scope, call: ast.Call) -> Import | None:
    root = _root(call)
    if root is None:
        return None
    return scope.imports.get(root.id) or scope.module.imports.get(root.id)


def _root(call: ast.Call) -> ast.Name | None:
    root: ast.expr = call.func
    while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    return root if isinstance(root, ast.Name) else None


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A decorator whose code lies outside of the code at hand."""

    file: str
    line: int
    text: str


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
