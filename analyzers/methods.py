"""The speculative and rejection methods that an install offers, from its configuration class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .program.module import Module
from .program.program import Program
from .result import Methods


def read_methods(program: Program, package: str) -> Methods:
    """The literals that the speculative configuration's `method` fields admit."""
    for module in _configurations(program, package):
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                fields = dict(_fields(node))
                offered = _values(module, fields.get("method"))
                if (len(offered) > 1 and "ngram" in offered) or _looks_speculative(fields, offered):
                    return Methods(offered, _rejection(module, fields))
    return Methods()


def _configurations(program: Program, package: str) -> Iterator[Module]:
    known = program.module(f"{package}.config.speculative") or program.module(f"{package}.config")
    if known is not None:
        yield known
    for module in program.siblings(f"{package}.config"):
        if module is not known and b"\n    method:" in module.source:
            yield module


def _looks_speculative(fields: dict[str, ast.expr], offered: tuple[str, ...]) -> bool:
    """A class whose `method` has several values, and that says how prompts are looked up."""
    lookups = [name for name in fields if name.startswith("prompt_lookup")]
    return len(offered) > 1 and len(lookups) >= 2


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, statement.annotation


def _rejection(module: Module, fields: dict[str, ast.expr]) -> tuple[str, ...]:
    for name, annotation in fields.items():
        if "reject" in name or "acceptance_method" in name:
            offered = _values(module, annotation)
            if offered:
                return offered
    return ()


def _values(module: Module, annotation: ast.expr | None) -> tuple[str, ...]:
    """The string literals behind an annotation, through aliases, each once and in order."""
    if annotation is None:
        return ()
    found: dict[str, None] = {}
    seen: set[str] = set()
    queue: list[ast.AST] = [annotation]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.setdefault(node.value)
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            definition = module.definitions.get(node.id)
            if isinstance(definition, ast.Assign | ast.AnnAssign) and definition.value is not None:
                queue.insert(0, definition.value)
        else:
            queue = [*ast.iter_child_nodes(node), *queue]
    return tuple(found)
