"""Whether a definition is what its name means in the end, or something else is put in its place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)


def rebindings(module: ast.Module, name: str) -> int:
    """How often `function`, `Class.function` or the class on the way is given another value.

    Assignments, imports and deletions in the scope of the definition count; definitions do not.
    """
    count = 0
    bodies: list[list[ast.stmt]] = [module.body]
    for part in name.split("."):
        nodes = [node for body in bodies for node in _in_scope(body)]
        count += sum(part in _bound(node) for node in nodes)
        bodies = [
            node.body for node in nodes if isinstance(node, ast.ClassDef) and node.name == part
        ]
    return count


def _in_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of one scope; of a scope inside it, the definition alone."""
    for node in nodes:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _in_scope(ast.iter_child_nodes(node))


def _bound(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return (node.id,)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return tuple(item.asname or item.name.partition(".")[0] for item in node.names)
    return ()
