"""Hook into functions of a module: one guarded import, one innermost decorator per function.

Function bodies, comments and formatting stay as they are, byte for byte. `edited` proves that of
its own result before it hands it out, and `marks.unedited` is its inverse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from .bindings import rebindings
from .errors import AnchorError
from .marks import MARK, confine, guard_of, unsafe
from .recipe import Anchor, missing


def edited(file: str, data: bytes, anchors: Sequence[Anchor]) -> bytes:
    """The module with a decorator on the function of every anchor.

    Raises:
        AnchorError: a function is not there exactly once, or not the one that the anchor means.
        ConflictError: the file cannot be edited without touching other bytes of it.
    """
    module = _parsed(file, data)
    body: list[cst.CSTNode] = list(module.body)
    meaning = ast.parse(data)
    for anchor in anchors:
        _check(anchor, list(_matches(module.body, anchor.name.split("."))))
        _refuse_rebound(anchor, rebindings(meaning, anchor.name))
        body = _decorated(body, anchor.name.split("."), _decorator(anchor.hook))
        if sum(_hooks(body)) != anchors.index(anchor) + 1:
            raise _conditional(anchor)
    place = _after_imports(body)
    hooks = [anchor.hook for anchor in anchors]
    guard = cst.parse_statement(guard_of(hooks).strip() + "\n", config=module.config_for_parsing)
    guard = guard.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    result = module.with_changes(body=[*body[:place], guard, *body[place:]]).bytes
    confine(file, data, result, hooks)
    return result


def _parsed(file: str, data: bytes) -> cst.Module:
    if MARK in data:
        raise unsafe(file, "it already holds hooks of ddtree")
    try:
        return cst.parse_module(data)
    except (cst.ParserSyntaxError, UnicodeDecodeError, SyntaxError) as error:
        raise unsafe(file, f"it cannot be parsed: {str(error).splitlines()[0]}") from error


def _matches(nodes: Sequence[cst.CSTNode], names: list[str]) -> Iterator[cst.FunctionDef]:
    """Every definition of that name, also those that a condition chooses between."""
    for node in nodes:
        if isinstance(node, cst.FunctionDef):
            if names == [node.name.value]:
                yield node
        elif isinstance(node, cst.ClassDef):
            if len(names) > 1 and node.name.value == names[0]:
                yield from _matches(node.body.body, names[1:])
        elif not isinstance(node, cst.SimpleStatementLine | cst.BaseExpression):
            yield from _matches(node.children, names)


def _check(anchor: Anchor, found: list[cst.FunctionDef]) -> None:
    if len(found) != 1:
        raise missing(anchor, len(found))
    (node,) = found
    parameters = tuple(
        item.name.value for item in [*node.params.posonly_params, *node.params.params]
    )
    if parameters[: len(anchor.parameters)] != anchor.parameters:
        raise _another(anchor, f"takes ({', '.join(parameters)})", ", ".join(anchor.parameters))


def _decorated(
    body: Sequence[cst.CSTNode], names: list[str], decorator: cst.Decorator
) -> list[cst.CSTNode]:
    return [_with_decorator(node, names, decorator) for node in body]


def _with_decorator(node: cst.CSTNode, names: list[str], decorator: cst.Decorator) -> cst.CSTNode:
    if isinstance(node, cst.FunctionDef) and names == [node.name.value]:
        # The last one is the innermost: what other decorators do stays around it.
        return node.with_changes(decorators=[*node.decorators, decorator])
    if isinstance(node, cst.ClassDef) and len(names) > 1 and node.name.value == names[0]:
        inner = _decorated(node.body.body, names[1:], decorator)
        return node.with_changes(body=node.body.with_changes(body=inner))
    return node


def _decorator(hook: str) -> cst.Decorator:
    return cst.Decorator(cst.parse_expression(f'_ddtree_hook("{hook}")'))


def _hooks(body: Sequence[cst.CSTNode]) -> Iterator[int]:
    """How many of our decorators every function has, in a module and its classes."""
    for node in body:
        if isinstance(node, cst.ClassDef):
            yield from _hooks(node.body.body)
        elif isinstance(node, cst.FunctionDef):
            yield sum(_is_hook(decorator.decorator) for decorator in node.decorators)


def _is_hook(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value.encode() == MARK
    )


def _after_imports(body: Sequence[cst.CSTNode]) -> int:
    """The index after the docstring and the first unbroken run of imports."""
    start = int(bool(body) and _is_docstring(body[0]))
    # These come before everything else, also where one shares its line with something.
    start = max([start, *(index + 1 for index, node in enumerate(body) if _is_future(node))])
    while start < len(body) and _is_import(body[start]):
        start += 1
    return start


def _is_docstring(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return False
    (inner,) = node.body
    return isinstance(inner, cst.Expr) and isinstance(
        inner.value, cst.SimpleString | cst.ConcatenatedString
    )


def _is_import(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(part, cst.Import | cst.ImportFrom) for part in node.body
    )


def _is_future(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and any(
        isinstance(part, cst.ImportFrom)
        and isinstance(part.module, cst.Name)
        and part.module.value == "__future__"
        for part in node.body
    )


def _refuse_rebound(anchor: Anchor, others: int) -> None:
    if others:
        raise _another(anchor, f"is given another value {others} times", "no other value")


def _conditional(anchor: Anchor) -> AnchorError:
    return AnchorError(
        f"{anchor.file}: {anchor.name} is defined 1 time, but inside a conditional block",
        expected=f"exactly 1 unconditional definition to hook {anchor.hook} into",
        hint="ddtree inspect host",
    )


def _another(anchor: Anchor, found: str, expected: str) -> AnchorError:
    return AnchorError(
        f"{anchor.file}: {anchor.name} is defined 1 time, but {found}",
        expected=f"a function with {expected} to hook {anchor.hook} into",
        hint="ddtree inspect host",
    )
