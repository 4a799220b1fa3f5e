"""Several outcomes as one Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from ....analyzers.remote.hosts import Outcome
from .. import md
from .rows import HEADER, failures, rows


def render(outcomes: Sequence[Outcome]) -> str:
    """The table, and the failures below it."""
    cells = [
        [md.code(target), f"**{verdict}**", *(md.prose(cell) for cell in rest)]
        for target, verdict, *rest in rows(outcomes)
    ]
    parts = [md.table(HEADER, cells)]
    parts += [f"- {md.code(one.target)}: {md.prose(one.found)}" for one in failures(outcomes)]
    return "\n\n".join(parts[:1] + (["\n".join(parts[1:])] if parts[1:] else [])) + "\n"
