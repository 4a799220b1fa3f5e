"""The text of functions in a module's source: what is compared when hooks are put on.

It is read when a plug-in is planned and again when it is loaded, so it needs nothing but Python.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

# By file, the SHA-256 of each function that is hooked in it, by qualified name.
Functions = Mapping[str, Mapping[str, str]]


def described(source: bytes, names: Iterable[str]) -> dict[str, str]:
    """The hashes of some functions of a module, decorators and comments included.

    Raises:
        ValueError: one of them is not there exactly once.
        SyntaxError: it is no Python.
    """
    found = _texts(source)
    hashes = {}
    for name in names:
        if len(found.get(name, [])) != 1:
            raise ValueError(f"{name} is defined {len(found.get(name, []))} times")
        hashes[name] = digest(found[name][0])
    return hashes


def changed(site: Path, functions: Functions, files: Mapping[str, str]) -> dict[str, str]:
    """What is not as it was, by file: a sentence for each.

    Args:
        site: the folder that holds `vllm`.
        functions: how they were.
        files: the SHA-256 that the files had; in one that has it still, nothing can have changed.
    """
    found = {}
    for file, known in functions.items():
        try:
            source = (site / file).read_bytes()
        except OSError as error:
            found[file] = f"{file} cannot be read ({error.strerror})"
            continue
        if digest(source) != files.get(file):
            names = [name for name in known if not _is(source, name, known[name])]
            if names:
                found[file] = f"{', '.join(names)} of {file} changed"
    return found


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def _is(source: bytes, name: str, known: str) -> bool:
    try:
        return described(source, [name])[name] == known
    except (ValueError, SyntaxError):
        return False


def _texts(source: bytes) -> dict[str, list[bytes]]:
    """Every definition of every function of a module and of its classes, by qualified name."""
    lines = source.splitlines(keepends=True)
    found: dict[str, list[bytes]] = {}

    def visit(nodes: Iterable[ast.AST], within: str) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
                text = b"".join(lines[first - 1 : node.end_lineno])
                found.setdefault(f"{within}{node.name}", []).append(text)
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{within}{node.name}.")
            elif not isinstance(node, ast.expr):
                # Definitions that a condition chooses between.
                visit(ast.iter_child_nodes(node), within)

    visit(ast.parse(source).body, "")
    return found
