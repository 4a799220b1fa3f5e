"""Commands to run next, which name the install that they are about."""

from __future__ import annotations

import shlex
from pathlib import Path


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
