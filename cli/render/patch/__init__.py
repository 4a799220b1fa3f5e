"""The result of `ddtree patch`, one renderer per file."""

from __future__ import annotations

from ....patches.perform import Outcome
from ....patches.plan import Plan
from ....patches.status import State, Status
from ...options import TextFormat

# A state that somebody asked about and would not like to hear.
_CODES = {State.LOST: 1, State.DAMAGED: 4, State.UNTRACKED: 1, State.REMNANTS: 1}


def render(outcome: Outcome, format_: TextFormat) -> str:
    """The outcome in the format asked for."""
    if format_ == TextFormat.JSON:
        from . import json

        return json.render(outcome)
    if format_ == TextFormat.MARKDOWN:
        from . import markdown

        return markdown.render(outcome)
    from .. import screen

    if screen.wanted():
        from . import terminal

        return terminal.render(outcome)
    from . import plain

    return plain.render(outcome)


def exit_code(outcome: Outcome) -> int:
    """0 for what is done or clean, else what a status says."""
    if not isinstance(outcome, Status) or outcome.whole:
        return 0
    return _CODES.get(outcome.state, 0)


def question(about: Plan | Status) -> str:
    """What a person reads before saying yes."""
    from . import plain

    head = (
        plain.plan_lines(about, whole=False)
        if isinstance(about, Plan)
        else plain.status_lines(about)
    )
    return "".join(f"{line}\n" for line in head) + "Go on? [y/N] "
