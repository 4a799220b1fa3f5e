"""The rules as Markdown: a table, or one rule with its examples."""

from __future__ import annotations

from ...rulebook import RuleHelp
from .. import md
from ..text import cleaned


def render(book: tuple[RuleHelp, ...], *, full: bool) -> str:
    """A table of all rules, or with `full` everything about each."""
    book = cleaned(book)
    if full:
        return "\n\n".join(_full(entry) for entry in book) + "\n"
    rows = [
        [md.code(entry.name), entry.stage.value, entry.supports.value, md.prose(entry.summary)]
        for entry in book
    ]
    return md.table(["rule", "stage", "shows", "what it looks for"], rows) + "\n"


def _full(entry: RuleHelp) -> str:
    head = f"## {md.code(entry.name)}\n\n{entry.stage}, shows {entry.supports}"
    parts = [head, md.block(entry.help, "text")]
    for title, examples in (("Found in", entry.found), ("Not found in", entry.not_found)):
        parts += [f"{title}:\n\n{md.block(text.strip(chr(10)), 'python')}" for text in examples]
    return "\n\n".join(parts)
