"""The reports of several targets, one renderer per file; failures stand beside them."""

from __future__ import annotations

from collections.abc import Sequence

from ....analyzers.remote.hosts import Outcome
from ...options import Format
from .. import screen


def render(
    outcomes: Sequence[Outcome], format_: Format, codes: Sequence[int], *, quiet: bool
) -> str:
    """All outcomes in the format asked for; `codes` are their exit codes."""
    if format_ == Format.JSON:
        from . import json

        return json.render(outcomes)
    if format_ == Format.SARIF:
        from ...rulebook import rulebook
        from . import sarif

        return sarif.render(outcomes, rulebook(), codes)
    if format_ == Format.MARKDOWN:
        from . import markdown

        return markdown.render(outcomes)
    if screen.wanted():
        from . import terminal

        return terminal.render(outcomes)
    from . import plain

    return plain.render(outcomes, quiet=quiet)
