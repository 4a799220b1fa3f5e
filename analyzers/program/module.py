"""One parsed source file: its imports and the definitions of its top level."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Import:
    """What a name is bound to by an import: a module, or an attribute of one."""

    module: str
    attribute: str | None = None


@dataclass(slots=True, eq=False)
class Module:
    """A parsed file; `name` is dotted, `path` relative to the source's root."""

    name: str
    path: str
    source: bytes
    tree: ast.Module
    is_package: bool
    imports: dict[str, Import] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)

    @property
    def package(self) -> str:
        """The package that relative imports of this module start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def parse_module(name: str, path: str, source: bytes) -> Module:
    """Parse `source` and index its top level, including `if` and `try` branches.

    Raises:
        SyntaxError, ValueError: the bytes are not Python.
    """
    with warnings.catch_warnings():
        # A stranger's invalid escape sequences are not our warnings.
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source, filename=path)
        except (RecursionError, MemoryError) as error:
            raise ValueError(f"nested too deeply to parse ({type(error).__name__})") from error
    module = Module(name, path, source, tree, path.endswith("/__init__.py"))
    for statement in _top_level(tree.body):
        _index(module, statement)
    return module


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _top_level(statement.body)
            yield from _top_level(getattr(statement, "orelse", []))
            for handler in getattr(statement, "handlers", []):
                yield from _top_level(handler.body)


def _index(module: Module, statement: ast.stmt) -> None:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for name, bound in imported_names(statement, module.package):
            module.imports.setdefault(name, bound)
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        module.definitions.setdefault(statement.name, statement)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                module.definitions.setdefault(target.id, statement)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        module.definitions.setdefault(statement.target.id, statement)


def imported_names(
    statement: ast.Import | ast.ImportFrom, package: str
) -> Iterator[tuple[str, Import]]:
    """The names that an import statement binds, with what they stand for."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            top = alias.name.partition(".")[0]
            yield alias.asname or top, Import(alias.name if alias.asname else top)
        return
    base = statement.module or ""
    if statement.level:
        parts = package.split(".")
        kept = parts[: len(parts) - statement.level + 1]
        base = ".".join([*kept, statement.module] if statement.module else kept)
    for alias in statement.names:
        yield alias.asname or alias.name, Import(base, alias.name)


@dataclass(frozen=True, slots=True)
class Mentions:
    """The nodes of one function that name something, each kind in source order."""

    names: tuple[ast.Name, ...]
    attributes: tuple[ast.Attribute, ...]
    calls: tuple[ast.Call, ...]
    stores: tuple[ast.Assign | ast.AnnAssign, ...]
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    returns: tuple[ast.Return, ...]


_KINDS = {
    ast.Name: 0,
    ast.Attribute: 1,
    ast.Call: 2,
    ast.Assign: 3,
    ast.AnnAssign: 3,
    ast.Import: 4,
    ast.ImportFrom: 4,
    ast.Return: 5,
}


def collect_mentions(function: FunctionNode) -> Mentions:
    """Sort the nodes of a function by kind in one pass.

    `ast.walk` asks every node for its field names; reading the instance dictionaries instead takes
    a third of the time, and this pass is most of what an inspection does.
    """
    found: tuple[list[Any], ...] = ([], [], [], [], [], [])
    stack: list[Any] = [function]
    while stack:
        node = stack.pop()
        kind = _KINDS.get(type(node))
        if kind is not None:
            found[kind].append(node)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            found[_KINDS[ast.Assign]].extend(_iterated(node.target, node.iter))
        for value in node.__dict__.values():
            if isinstance(value, ast.AST):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend(item for item in value if isinstance(item, ast.AST))
    return Mentions(*(tuple(sorted(nodes, key=_position)) for nodes in found))


def _iterated(target: ast.expr, source: ast.expr) -> Iterator[ast.Assign]:
    """What is iterated over reaches the loop's variables like an assignment.

    A counter of `enumerate` gets nothing, and the variables of `zip` each get their own.
    """
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
        parts = target.elts if isinstance(target, ast.Tuple) else []
        plain = not any(isinstance(argument, ast.Starred) for argument in source.args)
        if source.func.id == "range":
            return
        if source.func.id == "enumerate" and len(parts) == 2 and source.args:
            yield from _iterated(parts[1], source.args[0])
            return
        if source.func.id == "zip" and plain and len(parts) == len(source.args):
            for part, argument in zip(parts, source.args, strict=True):
                yield from _iterated(part, argument)
            return
    bound = ast.Assign(targets=[target], value=source)
    yield ast.copy_location(bound, target)


def _position(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset
