"""The report of `ddtree inspect host`, one renderer per file."""

from __future__ import annotations

from ....analyzers.result import Report
from ...options import Format
from .. import screen


def render(report: Report, format_: Format, *, quiet: bool, exit_code: int) -> str:
    """The report in the format asked for; `quiet` shortens text to the verdict line.

    Each renderer is imported when it is used: most runs need one, and two of them are heavy.
    """
    if format_ == Format.JSON:
        from . import json

        return json.render(report)
    if format_ == Format.SARIF:
        from ...rulebook import rulebook
        from . import sarif

        return sarif.render(report, rulebook(), exit_code)
    if format_ == Format.MARKDOWN:
        from . import markdown

        return markdown.render(report, quiet=quiet)
    if screen.wanted():
        from . import terminal

        return terminal.render(report, quiet=quiet)
    from . import plain

    return plain.render(report, quiet=quiet)
