"""A stand-in for a terminal: stdout that says it is one, with a width and a colour depth."""

from __future__ import annotations

import io
import re
import sys

import pytest

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Screen(io.StringIO):
    """Text that a terminal would have shown."""

    def isatty(self) -> bool:
        return True


def become(monkeypatch: pytest.MonkeyPatch, columns: int, **environment: str) -> None:
    """Make stdout a terminal of that width; nothing of the caller's own terminal leaks in."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm-256color", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Screen())


def shown(text: str) -> list[str]:
    """The lines without their colours."""
    return ESCAPE.sub("", text).split("\n")
