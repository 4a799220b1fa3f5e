"""The outcome as Markdown: the lines as a list, and the diff of a plan in a block."""

from __future__ import annotations

from ....patches.perform import Outcome, Planned
from .. import md
from . import plain


def render(outcome: Outcome) -> str:
    """All of the outcome."""
    diff = plain.clean_diff(outcome.plan) if isinstance(outcome, Planned) else ""
    text = plain.render(outcome)
    lines = text[: len(text) - len(diff)].splitlines()
    body = "".join(f"- {md.prose(line)}\n" for line in lines)
    return body + (f"\n{md.block(diff, 'diff')}\n" if diff else "")
