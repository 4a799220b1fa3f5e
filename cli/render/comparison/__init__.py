"""The result of `ddtree inspect compare`, one renderer per file."""

from __future__ import annotations

from ....analyzers.compare import Comparison
from ...options import TextFormat
from .. import screen


def render(comparison: Comparison, format_: TextFormat, *, quiet: bool) -> str:
    """The comparison in the format asked for; `quiet` shortens text to the verdict line."""
    if format_ == TextFormat.JSON:
        from . import json

        return json.render(comparison)
    if format_ == TextFormat.MARKDOWN:
        from . import markdown

        return markdown.render(comparison, quiet=quiet)
    if screen.wanted():
        from . import terminal

        return terminal.render(comparison, quiet=quiet)
    from . import plain

    return plain.render(comparison, quiet=quiet)
