"""What is sent: a command that finds a Python there, and one line of it that brings our modules."""

from __future__ import annotations

import ast
import base64
import importlib
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .frame import MARK_NONE

_TOP = __package__.partition(".")[0]
# Pure Python without needs of its own; every other package stays here.
_TRAVELS = (_TOP, "packaging")
_LOADER = Path(__file__).with_name("far") / "loader.py"
OLDEST = (3, 8)
# Where a Python may be besides the PATH, which is short for commands that are no login.
ELSEWHERE = (
    "python3 python python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 "
    "/usr/bin/python3 /usr/local/bin/python3 /opt/*/bin/python3 "
    '"$HOME"/.venv/bin/python3 "$HOME"/venv/bin/python3'
)
# One line: every login shell takes it as one quoted word. `ELSEWHERE` stands in the place of `@`.
# Its arguments are the path that was named, a test of the version, what is run, and the token of
# the reply.
_FIND = (
    'p=$1; t=$2; r=$3; k=$4; case $p in "~/"*) p=$HOME/${p#??};; esac; '
    'if [ -z "$p" ]; then set -- @; '
    'elif [ -d "$p" ]; then set -- "$p/bin/python" "$p/bin/python3" @; '
    'else set -- "$p"; fi; '
    'for q; do if command -v "$q" >/dev/null 2>&1; then '
    'if "$q" -I -S -c "$t" </dev/null >/dev/null 2>&1; then exec "$q" -I -S -c "$r"; fi; '
    's="$s$q ($("$q" -V 2>&1 </dev/null | head -n 1)); "; fi; done; '
    f'printf \'{MARK_NONE}%s %s\\n\' "$k" "$s"; exit 3'
)
_RUN = "import sys; exec(sys.stdin.buffer.readline())"


@dataclass(frozen=True, slots=True)
class Program:
    """Modules of ours that run on the other side.

    Attributes:
        entry: the module whose `reply` takes the request, below the top package.
        more: modules that no import statement names, below the top package.
        oldest: the Python that it needs.
    """

    entry: str
    more: tuple[str, ...] = ()
    oldest: tuple[int, int] = OLDEST


def command(python: str | None, token: str, oldest: tuple[int, int] = OLDEST) -> list[str]:
    """The command that runs the line which `line` makes, by the Python that is named or found."""
    words = _FIND.replace("@;", f"{ELSEWHERE};")
    return ["sh", "-c", words, "ddtree", python or "", test(oldest), _RUN, token]


def test(oldest: tuple[int, ...] = OLDEST) -> str:
    """A program that fails where Python is too old."""
    return f"import sys; sys.exit(sys.version_info < {oldest})"


def line(request: Mapping[str, Any], program: Program) -> bytes:
    """One line of Python that loads our modules from itself and answers a request."""
    full = {**request, "stdlib": sorted(sys.stdlib_module_names)}
    words = [repr(json.dumps(part)) for part in (texts(program), full)]
    text = (
        f"{_LOADER.read_text('utf-8')}\nimport json\n"
        f"main(json.loads({words[0]}), {f'{_TOP}.{program.entry}'!r}, json.loads({words[1]}))\n"
    )
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    return (
        "import base64, zlib; "
        f"exec(compile(zlib.decompress(base64.b64decode('{packed}')), '<ddtree>', 'exec'))\n"
    ).encode("ascii")


@cache
def texts(program: Program) -> dict[str, str]:
    """The modules that the other side needs by name; those of packages end in a dot."""
    found: dict[str, str] = {}
    waiting = [f"{_TOP}.{name}" for name in (program.entry, *program.more)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        path = _path_of(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        package = path.name == "__init__.py"
        text = path.read_text("utf-8")
        found[f"{name}." if package else name] = text
        parent = name.rpartition(".")[0]
        waiting.append(parent)
        waiting += _imported(text, name if package else parent)
    return found


def _path_of(name: str) -> Path | None:
    top, *parts = name.split(".")
    if top not in _TRAVELS:
        return None
    (root,) = importlib.import_module(top).__path__
    stem = Path(root).joinpath(*parts)
    paths = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
    return next((path for path in paths if path.is_file()), None)


def _imported(text: str, package: str) -> Iterator[str]:
    """What a module imports of ours as it is loaded, not later and not for type checkers."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            base = [*base, *filter(None, [node.module])]
            yield ".".join(base)
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
