"""The rules as lines `name: stage: supports: summary`; one rule as its help text and examples."""

from __future__ import annotations

from ...rulebook import RuleHelp
from ..text import cleaned


def render(book: tuple[RuleHelp, ...], *, full: bool) -> str:
    """A line per rule, or with `full` everything about it."""
    return "".join(_full(entry) if full else _line(entry) for entry in cleaned(book))


def _line(entry: RuleHelp) -> str:
    return f"{entry.name}: {entry.stage}: {entry.supports}: {entry.summary}\n"


def _full(entry: RuleHelp) -> str:
    parts = [_line(entry) + "\n" + entry.help]
    parts += [f"found in:\n\n{text.strip(chr(10))}" for text in entry.found]
    parts += [f"not found in:\n\n{text.strip(chr(10))}" for text in entry.not_found]
    return "\n\n".join(parts) + "\n"
