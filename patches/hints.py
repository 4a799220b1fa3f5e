"""Commands to run next, which name the install that they are about."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

# The option by which a user says that other people's edits of the hooked files may be there.
LOCAL_EDITS = "--allow-local-edits"


def patch(target: str | Path, *words: str, named: Sequence[str] = ()) -> str:
    """`ddtree patch` for a target, ready to be pasted into a shell.

    Args:
        target: what the user named.
        words: the options.
        named: options that belong to the name, where the target is another machine.
    """
    return shlex.join(["ddtree", "patch", str(target), *named, *words])


def inspect(target: str | Path) -> str:
    """`ddtree inspect host` for a target, ready to be pasted into a shell."""
    return shlex.join(["ddtree", "inspect", "host", str(target)])
