"""The outcome as Markdown: the lines as a list, and the diff of a plan in a block."""

from __future__ import annotations

from ....patches.perform import Outcome
from .. import md
from . import plain


def render(outcome: Outcome) -> str:
    """All of the outcome."""
    first, diff, last = plain.parts(outcome)
    body = _listed(first.splitlines())
    if diff:
        body += f"\n{md.block(diff, 'diff')}\n\n{_listed(last.splitlines())}"
    return body


def _listed(lines: list[str]) -> str:
    return "".join(f"- {md.prose(line)}\n" for line in lines)
