"""What hooks look like in an edited file, so that they can be found, checked and taken out again.

Needs no libcst: the same lines are read where nothing but Python is installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ..analyzers.errors import ConflictError

# What every edited file holds and no other file does.
MARK = b"_ddtree_hook"

GUARD = """
try:
    from ddtree_runtime.hooks import hook as _ddtree_hook
except ImportError:

    def _ddtree_hook(name):
        return lambda function: function
"""
_LINE = rb"(?:\r\n|\n|\r)"
_GUARD_LINES = re.compile(
    rb"(?m)" + _LINE + rb"^" + _LINE.join(
        rb"[ \t]*" + re.escape(line.strip().encode()) for line in GUARD.strip().split("\n")
    ) + _LINE
)  # fmt: skip
_DECORATOR_LINE = re.compile(rb'(?m)^[ \t]*@_ddtree_hook\("[\w.]+"\)' + _LINE)


def unedited(data: bytes) -> bytes:
    """The module without the lines that `edited` adds; others are handed back."""
    return _DECORATOR_LINE.sub(b"", _GUARD_LINES.sub(b"", data))


def holds(data: bytes, hooks: Sequence[tuple[str, str]]) -> bool:
    """Whether a module has the guarded import, exactly these hooks, and no other line of ddtree.

    Args:
        hooks: `function` or `Class.function`, and the name of its hook, which has to be the
            innermost decorator.
    """
    lines = len(_DECORATOR_LINE.findall(data)), len(_GUARD_LINES.findall(data))
    if lines != (len(hooks), 1):
        return False
    try:
        body = ast.parse(data).body
    except (SyntaxError, ValueError):
        return False
    guarded = any(isinstance(node, ast.Try) and MARK.decode() in ast.dump(node) for node in body)
    return guarded and sorted(_hooked(body, "")) == sorted(hooks)


def _hooked(body: Sequence[ast.stmt], within: str) -> Iterator[tuple[str, str]]:
    """Functions of a module and of its classes, each with the hook that is closest to it."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _hooked(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.decorator_list:
            found = node.decorator_list[-1]
            if isinstance(found, ast.Call) and ast.unparse(found.func) == MARK.decode():
                yield f"{within}{node.name}", str(getattr(found.args[0], "value", None))


def confine(file: str, old: bytes, new: bytes, hooks: int) -> None:
    """Check that `new` is `old`, one guarded import and `hooks` decorators, and nothing else.

    Raises:
        ConflictError: it is not, or it does not compile.
    """
    added = len(_DECORATOR_LINE.findall(new)), len(_GUARD_LINES.findall(new))
    if added != (hooks, 1) or unedited(new) != old:
        more = f"the edit would change more than {hooks} decorators and one import"
        raise unsafe(file, f"{more}; all else has to stay, byte for byte")
    try:
        # All of it: that a `__future__` import has to come first is no matter of syntax.
        compile(new, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise unsafe(file, f"the edited file would not compile: {error}") from error


def unsafe(file: str, reason: str) -> ConflictError:
    """The refusal for a file that cannot be edited."""
    return ConflictError(
        f"{file} cannot be edited: {reason}",
        expected="a file of an unpatched release",
        hint="ddtree inspect host",
    )
