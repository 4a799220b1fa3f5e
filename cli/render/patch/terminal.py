"""The outcome for a person at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ....patches.perform import Outcome
from .. import console as ui
from . import plain

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def render(outcome: Outcome) -> str:
    """The lines with their labels dimmed, and the diff of a plan in colours.

    The files beside vLLM are counted alone: their names would push everything else away.
    """
    before, diff, after = plain.parts(outcome, whole=False)
    head = before + after

    def draw(console: Console) -> None:
        for line in diff.splitlines():
            console.print(Text(line, style=_STYLES.get(line[:1], "dim")), soft_wrap=True)
        if diff:
            console.print()
        for line in head.splitlines():
            label, colon, rest = line.partition(": ")
            styled = Text.assemble((label + colon, "dim" if rest else "bold"), rest)
            # A command is pasted into a shell, so the terminal alone may wrap it.
            console.print(styled, soft_wrap=label == "run")

    return ui.drawn(draw)
