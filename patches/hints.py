"""Commands to run next, which name the install that they are about."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..analyzers.result import Install


def patch(target: str | Path, *words: str, python: str | None = None) -> str:
    """`ddtree patch` for a target, ready to be pasted into a shell.

    Args:
        target: what the user named.
        words: the options.
        python: what names the environment, where the target is another machine.
    """
    named = ["--python", python] if python else []
    return shlex.join(["ddtree", "patch", str(target), *named, *words])


def inspect(target: str | Path) -> str:
    """`ddtree inspect host` for a target, ready to be pasted into a shell."""
    return shlex.join(["ddtree", "inspect", "host", str(target)])


def reinstall(target: str | Path, install: Install) -> str:
    """How the files of an install come back; what is known of it if nobody installed it."""
    if install.distribution is None or install.version is None:
        return inspect(target)
    wanted = f"{install.distribution}=={install.version}"
    return shlex.join(["python", "-m", "pip", "install", "--force-reinstall", "--no-deps", wanted])
