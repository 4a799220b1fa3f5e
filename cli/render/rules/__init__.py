"""The result of `ddtree inspect rules`, one renderer per file."""

from __future__ import annotations

from ...options import TextFormat
from ...rulebook import RuleHelp
from .. import screen


def render_list(book: tuple[RuleHelp, ...], format_: TextFormat) -> str:
    """All rules, each in one line or entry."""
    return _render(book, format_, full=False)


def render_one(entry: RuleHelp, format_: TextFormat) -> str:
    """One rule with its help text and examples."""
    return _render((entry,), format_, full=True)


def _render(book: tuple[RuleHelp, ...], format_: TextFormat, *, full: bool) -> str:
    if format_ == TextFormat.JSON:
        from . import json

        return json.render(book)
    if format_ == TextFormat.MARKDOWN:
        from . import markdown

        return markdown.render(book, full=full)
    if screen.wanted():
        from . import terminal

        return terminal.render(book, full=full)
    from . import plain

    return plain.render(book, full=full)
