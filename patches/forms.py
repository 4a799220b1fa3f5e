"""Whether a function that gets hooked is as a release has it, in a file that somebody else edited.

RECORD knows whole files alone. So the forms of the functions in all releases are kept as hashes of
their structure, in `known_forms.py`, which `make matrix` writes.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence

from .errors import AnchorError
from .known_forms import FORMS
from .recipe import Anchor


def form(node: ast.AST) -> str:
    """The hash of one function's structure: its decorators too, no docstring, comment or layout."""
    return hashlib.sha256(_structure(node).encode()).hexdigest()[:12]


def forms_of(data: bytes, name: str) -> list[str]:
    """The form of every function of that name, `function` or `Class.function`, in a module.

    Raises:
        SyntaxError: it is none.
        ValueError: it holds what no source does.
    """
    return [form(node) for node in _named(ast.parse(data).body, name.split("."))]


def refuse_touched(file: str, data: bytes, anchors: Sequence[Anchor]) -> None:
    """Refuse a file that was edited if one of its functions that get hooked may have been, too.

    A function that is not there once is left to whoever makes the edit.

    Raises:
        AnchorError: no release has a function in that form; the message names it.
    """
    for anchor in anchors:
        try:
            found = forms_of(data, anchor.name)
        except (SyntaxError, ValueError):
            return
        if len(found) == 1 and found[0] not in FORMS.get(anchor.hook, ()):
            raise AnchorError(
                f"{file}: somebody else changed {anchor.name}, or the file is of a release that "
                f"this ddtree does not know; {anchor.hook} hooks into it",
                expected=f"{anchor.name} as a release of vLLM has it; all else may be changed",
                hint="ddtree inspect host",
            )


def _named(body: Sequence[ast.stmt], names: list[str]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.ClassDef) and len(names) > 1 and node.name == names[0]:
            yield from _named(node.body, names[1:])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and names == [node.name]:
            yield node


def _structure(value: object) -> str:
    # `ast.dump` writes the same tree differently from one Python to the next.
    if isinstance(value, ast.AST):
        parts = [(name, _kept(value, getattr(value, name, None))) for name in value._fields]
        kept = [f"{name}={_structure(part)}" for name, part in parts if part not in (None, [])]
        return f"{type(value).__name__}({','.join(kept)})"
    if isinstance(value, list):
        return f"[{','.join(map(_structure, value))}]"
    return repr(value)


def _kept(node: ast.AST, part: object) -> object:
    """A part of a node; of a function's body, all but the docstring."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and part is node.body:
        return node.body[ast.get_docstring(node, clean=False) is not None :]
    return part
