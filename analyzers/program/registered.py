"""What a package registers under a string: by decorator, by assignment, by a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .module import FunctionNode, Module
from .program import Program


def registered(
    program: Program, home: Module, key: str
) -> Iterator[tuple[Module, FunctionNode | ast.expr]]:
    """The functions, or expressions that name them, that stand under `key` around `home`.

    Around it is the top-level package of a module outside of `vllm`, and the nearest one of a
    module inside, which registers other things under other strings elsewhere.
    """
    around = home.package
    if not program.is_inside(home.name):
        around = home.name.partition(".")[0]
    for module in program.below(around, key.encode()):
        for node in ast.walk(module.tree):
            for found in _under(node, key):
                yield module, found


def _under(node: ast.AST, key: str) -> Iterator[FunctionNode | ast.expr]:
    match node:
        case ast.FunctionDef(decorator_list=marks) | ast.AsyncFunctionDef(decorator_list=marks):
            if any(isinstance(mark, ast.Call) and _gives(mark, key) for mark in marks):
                yield node
        case ast.Dict(keys=keys, values=values):
            yield from (v for k, v in zip(keys, values, strict=True) if k and _is(k, key))
        case ast.Assign(targets=[ast.Subscript(slice=place)], value=value) if _is(place, key):
            yield value
        case ast.Call(args=[first, second, *_]) if _is(first, key):
            # `register("name", function)`.
            if isinstance(second, ast.Name | ast.Attribute):
                yield second


def _gives(mark: ast.Call, key: str) -> bool:
    return any(_is(value, key) for value in [*mark.args, *(word.value for word in mark.keywords)])


def _is(node: ast.expr, key: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == key
