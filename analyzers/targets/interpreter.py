"""The environment of an interpreter: from its files, else by asking it for its paths."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..install.names import printable
from .environment import Environment, environment_of, is_environment, unique
from .local import is_dir, is_file

_TIMEOUT = 15
_MARK = "ddtree-paths:"
# `-S` keeps .pth files and sitecustomize from running, so nothing of the target is imported.
_FLAGS = ("-I", "-S", "-c")
_QUESTION = f"""
import json, platform, site, sys
print({_MARK!r} + json.dumps([
    platform.python_version(),
    sys.executable,
    [site.getusersitepackages()] + site.getsitepackages() + sys.path,
]))
"""


def running_environment() -> Environment:
    """Where the running interpreter would import from, less the folder of its script."""
    paths = sys.path if getattr(sys.flags, "safe_path", False) else sys.path[1:]
    sites = unique(Path(path) for path in paths if path and is_dir(Path(path)))
    return Environment(sys.prefix, sites, platform.python_version())


def interpreter_environment(python: Path) -> Environment:
    """The environment of the interpreter at `python` (or found on PATH under that name).

    Raises:
        TargetError: there is no such interpreter, or it does not answer.
    """
    path = _existing(python)
    for prefix in (path.parent, path.parent.parent):
        if is_environment(prefix):
            return environment_of(prefix)
    version, executable, paths = _ask(path)
    # A wrapper script may start the interpreter of a virtual environment.
    for prefix in (Path(executable).parent, Path(executable).parent.parent):
        if executable and is_file(prefix / "pyvenv.cfg"):
            return environment_of(prefix)
    sites = unique(Path(folder) for folder in paths if folder and is_dir(Path(folder)))
    return Environment(str(path), sites, version)


def _existing(python: Path) -> Path:
    if is_dir(python):
        raise TargetError(
            f"{printable(str(python))} is a folder, not an interpreter",
            expected="the path of a python executable after --python",
            hint=f"ddtree inspect host {printable(str(python))}",
        )
    if is_file(python):
        return python.absolute()
    named = shutil.which(python) if os.sep not in str(python) else None
    if named is None:
        raise TargetError(
            f"there is no interpreter {printable(str(python))}",
            expected="the path of a python executable after --python",
            hint="command -v python3",
        )
    return Path(named).absolute()


def _ask(path: Path) -> tuple[str | None, str, list[str]]:
    try:
        done = subprocess.run(
            [str(path), *_FLAGS, _QUESTION],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _mute(path, f"gave no answer within {_TIMEOUT} seconds") from None
    except OSError as error:
        raise _mute(path, f"cannot be run: {error.strerror}") from error
    for line in reversed(done.stdout.decode("utf-8", "replace").splitlines()):
        if line.startswith(_MARK):
            return _answer(path, line[len(_MARK) :])
    raise _mute(path, f"does not answer like a Python (exit code {done.returncode})")


def _answer(path: Path, text: str) -> tuple[str | None, str, list[str]]:
    try:
        version, executable, paths = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise _mute(path, "answers something that cannot be read") from None
    return _text(version) or None, _text(executable), [_text(item) for item in _list(paths)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mute(path: Path, what: str) -> TargetError:
    shown = printable(str(path))
    return TargetError(
        f"the interpreter {shown} {what}",
        expected="a Python that can print its import paths",
        hint=f"{shown} -I -c 'import sys; print(sys.path)'",
    )
