"""One parsed source file: its imports and the definitions of its top level."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

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
    # What a name means in another branch of the top level, where it has several meanings.
    others: dict[str, list[Definition | Import]] = field(default_factory=dict)
    # The modules all of whose names are imported.
    stars: list[str] = field(default_factory=list)
    # Names that are defined here only where their import fails.
    fallbacks: set[str] = field(default_factory=set)

    @property
    def package(self) -> str:
        """The package that relative imports of this module start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def line(self, number: int) -> str:
        """A line of the file, counted from 1, without its end; empty past the file's."""
        lines = self.source.splitlines()
        return lines[number - 1].decode("utf-8", "replace").rstrip() if number <= len(lines) else ""


def parse_module(name: str, path: str, source: bytes) -> Module:
    """Parse `source` and index its top level, including `if` and `try` branches.

    Raises:
        SyntaxError, ValueError: the bytes are not Python.
    """
    with warnings.catch_warnings():
        # A stranger's invalid escape sequences are not our warnings.
        warnings.simplefilter("ignore")
        try:
            _check_encoding(source)
            tree = ast.parse(source, filename=path)
        except (RecursionError, MemoryError) as error:
            raise ValueError(f"nested too deeply to parse ({type(error).__name__})") from error
    module = Module(name, path, source, tree, path.endswith("/__init__.py"))
    for statement in _top_level(tree.body):
        _index(module, statement)
        if isinstance(statement, ast.Try):
            module.fallbacks.update(_fallbacks(statement))
    return module


def _fallbacks(guarded: ast.Try) -> Iterator[str]:
    """The names that an import in a `try` binds and a handler of it defines."""
    imported = {
        name
        for statement in guarded.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name, _ in imported_names(statement, "")
    }
    for handler in guarded.handlers if imported else ():
        for statement in handler.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from imported & {statement.name}
            elif isinstance(statement, ast.Assign):
                yield from imported & {one.id for one in statement.targets if _is_name(one)}


def _is_name(node: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _check_encoding(source: bytes) -> None:
    """Refuse undecodable bytes even in comments, as Python's import does."""
    if source.isascii():
        return
    try:
        source.decode(tokenize.detect_encoding(io.BytesIO(source).readline)[0])
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ValueError(f"no utf-8, and no other encoding is declared: {error}") from error


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
            if name == "*":
                module.stars.append(bound.module)
            elif module.imports.setdefault(name, bound) != bound:
                module.others.setdefault(name, []).append(bound)
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        _define(module, statement.name, statement)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            for part in parts:
                if isinstance(part, ast.Name):
                    _define(module, part.id, statement)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        _define(module, statement.target.id, statement)


def _define(module: Module, name: str, definition: Definition) -> None:
    if module.definitions.setdefault(name, definition) is not definition:
        module.others.setdefault(name, []).append(definition)


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
