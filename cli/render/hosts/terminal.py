"""Several outcomes for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....analyzers.remote.hosts import Outcome
from .. import console as ui
from .rows import HEADER, failures, rows


def render(outcomes: Sequence[Outcome]) -> str:
    """One table, and below it what failed and what to run then."""

    def draw(console: Console) -> None:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
        for label in HEADER:
            table.add_column(label, overflow="fold")
        for target, verdict, *rest in rows(outcomes):
            shown = Text(verdict, style="bold red") if verdict == "failed" else ui.word(verdict)
            table.add_row(Text(target, style="bold"), shown, *map(Text, rest))
        console.print(table)
        for one in failures(outcomes):
            ui.prose(console, Text.assemble((one.target, "bold"), ": ", one.found))
            ui.prose(console, Text.assemble(("run: ", "dim"), one.hint), indent=2)

    return ui.drawn(draw)
