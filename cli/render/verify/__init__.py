"""The result of `ddtree verify`, one renderer per file."""

from __future__ import annotations

from ....patches.verify.report import Report, Verdict
from ...options import TextFormat
from .. import screen


def render(report: Report, format_: TextFormat, *, quiet: bool) -> str:
    """The report in the format asked for; `quiet` shortens text to two lines."""
    if format_ == TextFormat.JSON:
        from . import json

        return json.render(report)
    if format_ == TextFormat.MARKDOWN:
        from . import markdown

        return markdown.render(report, quiet=quiet)
    if screen.wanted():
        from . import terminal

        return terminal.render(report, quiet=quiet)
    from . import plain

    return plain.render(report, quiet=quiet)


def exit_code(report: Report) -> int:
    """1 if something failed; what was not run fails nothing."""
    return int(report.verdict == Verdict.FAILED)
