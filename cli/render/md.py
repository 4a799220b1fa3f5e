"""Markdown that stays Markdown, whatever the inspected code contains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<#|~!&$]|^>)")
_MENTION = re.compile(r"@[\w./-]+")
_TICKS = re.compile(r"`+")


def prose(text: str) -> str:
    """Text that renders as itself; `@name` becomes code, so that nobody is notified."""
    pieces: list[str] = []
    end = 0
    for mention in _MENTION.finditer(text):
        pieces += [_SPECIAL.sub(r"\\\1", text[end : mention.start()]), code(mention[0])]
        end = mention.end()
    return "".join([*pieces, _SPECIAL.sub(r"\\\1", text[end:])])


def code(text: str) -> str:
    """A code span, fenced with more backticks than the text has in a row."""
    if not text:
        return ""
    fence = "`" * (_longest(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def block(text: str, language: str) -> str:
    """A fenced block that the text cannot close."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already; a bar ends a cell even inside a code span."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(cell: str) -> str:
    # A bar behind an odd number of backslashes is escaped already.
    return re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", cell)


def _longest(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
