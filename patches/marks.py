"""What hooks look like in an edited file, so that they can be found, checked and taken out again.

Needs no libcst: the same lines are read where nothing but Python is installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from ..analyzers.errors import ConflictError

# What every edited file holds and no other file does.
MARK = b"_ddtree_hook"

# Whatever a damaged runtime raises: vLLM is stock then, as it is without one.
GUARD = """
try:
    from ddtree_runtime.hooks import hook as _ddtree_hook
except Exception:

    def _ddtree_hook(name):
        return lambda function: function
"""
# In the file whose hooks take a `VllmConfig`: stock as well, unless trees are asked for. A refusal
# that nobody catches is said without a look at vLLM's code.
CONFIG_GUARD = """
try:
    from ddtree_runtime.hooks import hook as _ddtree_hook
except Exception as _ddtree_error:
    _ddtree_reason = f"{type(_ddtree_error).__name__}: {_ddtree_error}"

    def _ddtree_hook(name):
        from functools import wraps

        def decorate(function):
            @wraps(function)
            def checked(*args, **kwargs):
                given = getattr(args[0], "additional_config", None)
                if isinstance(given, dict) and "ddtree" in given:
                    import sys

                    error = RuntimeError(
                        "ddtree: trees are configured, and their runtime cannot be loaded "
                        f"({_ddtree_reason}); run: ddtree patch --status, "
                        'or remove "ddtree" from --additional-config'
                    )
                    before = sys.excepthook

                    def say(kind, found, trace):
                        if found is error:
                            print(found, file=sys.stderr)
                        else:
                            before(kind, found, trace)

                    sys.excepthook = say
                    raise error
                return function(*args, **kwargs)

            return checked

        return decorate
"""
# What the hooks of such a file are called.
CONFIG_HOOKS = "config."
# What releases of ddtree before these wrote.
_FORMER = """
try:
    from ddtree_runtime.hooks import hook as _ddtree_hook
except ImportError:

    def _ddtree_hook(name):
        return lambda function: function
"""
_LINE = rb"(?:\r\n|\n|\r)"


def _pattern(*guards: str) -> re.Pattern[bytes]:
    """Any of these guards, in a file with other line ends or indentation too."""
    texts = (
        _LINE.join(rb"[ \t]*" + re.escape(line.strip().encode()) for line in guard.split("\n"))
        for guard in (guard.strip("\n") for guard in guards)
    )
    return re.compile(rb"(?m)" + _LINE + rb"^(?:" + b"|".join(texts) + rb")" + _LINE)


_GUARDS = {guard: _pattern(guard) for guard in (GUARD, CONFIG_GUARD)}
_ANY_GUARD = _pattern(GUARD, CONFIG_GUARD, _FORMER)
_DECORATOR_LINE = re.compile(rb'(?m)^[ \t]*@_ddtree_hook\("[\w.]+"\)' + _LINE)


def guard_of(hooks: Iterable[str]) -> str:
    """The guarded import for a file with hooks of these names."""
    return CONFIG_GUARD if any(name.startswith(CONFIG_HOOKS) for name in hooks) else GUARD


def unedited(data: bytes) -> bytes:
    """The module without the lines that `edited` adds; others are handed back."""
    return _DECORATOR_LINE.sub(b"", _ANY_GUARD.sub(b"", data))


def holds(data: bytes, hooks: Sequence[tuple[str, str]]) -> bool:
    """Whether a module has the guarded import, exactly these hooks, and no other line of ddtree.

    Args:
        hooks: `function` or `Class.function`, and the name of its hook, which has to be the
            innermost decorator.
    """
    if _added(data, [name for _, name in hooks]) != (len(hooks), 1):
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


def _added(data: bytes, hooks: Iterable[str]) -> tuple[int, int]:
    """How many decorators a module has, and how often the guarded import of hooks of such names."""
    return len(_DECORATOR_LINE.findall(data)), len(_GUARDS[guard_of(hooks)].findall(data))


def confine(file: str, old: bytes, new: bytes, hooks: Sequence[str]) -> None:
    """Check that `new` is `old`, one guarded import and a decorator per hook, and nothing else.

    Raises:
        ConflictError: it is not, or it does not compile.
    """
    if _added(new, hooks) != (len(hooks), 1) or unedited(new) != old:
        more = f"the edit would change more than {len(hooks)} decorators and one import"
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
