"""The report for a person at a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....patches.verify.report import Level, Outcome, Pays, Report, Verdict
from .. import console as ui
from ..text import cleaned
from . import phrases

STYLES = {
    Outcome.PASSED: "green",
    Outcome.FAILED: "bold red",
    Outcome.NOT_RUN: "yellow",
    Verdict.PASSED: "bold green reverse",
    Verdict.FAILED: "bold red reverse",
    Verdict.INCOMPLETE: "bold yellow reverse",
}


def render(report: Report, *, quiet: bool) -> str:
    """What became of it first, then the levels, the figures, and what was verified."""
    report = cleaned(report)

    def draw(console: Console) -> None:
        _banner(console, report)
        if quiet:
            return
        _levels(console, report)
        for level in report.levels:
            _checks(console, level)
        _figures(console, report)
        ui.heading(console, Text("what was verified", style="bold"))
        ui.pairs(console, list(phrases.facts(report)))
        for text in (report.rule, *report.notes):
            ui.prose(console, Text(text, style="dim"))
        if report.log:
            ui.heading(console, Text("the target's last words", style="bold"))
        for line in report.log:
            console.print(Text(line, style="dim"), soft_wrap=True)

    return ui.drawn(draw)


def _banner(console: Console, report: Report) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    word = Text(f" {report.verdict.upper()} ", style=STYLES[report.verdict])
    grid.add_row(word, Text(phrases.headline(report)))
    pays = Text("pays" if report.pays == Pays.YES else "", style="bold green")
    grid.add_row(pays, Text(report.sentence))
    console.print(grid, width=min(console.width, ui.PROSE_WIDTH))


def _levels(console: Console, report: Report) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("level", "outcome"):
        table.add_column(title, no_wrap=True)
    table.add_column("claim", overflow="fold")
    table.add_column("", overflow="fold")
    outcome, sentence = phrases.imports(report)
    table.add_row("", _word(outcome), "the edited modules import", sentence)
    for level in report.levels:
        table.add_row(level.level, _word(level.outcome), level.claim, phrases.level(level))
    console.print(table)


def _checks(console: Console, level: Level) -> None:
    if not level.checks:
        return
    console.print(Text(f"{level.level}: {level.claim}", style="bold"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for check in level.checks:
        grid.add_row(_word(check.outcome), check.name, Text(check.detail, style="dim"))
    console.print(grid)
    console.print()


def _figures(console: Console, report: Report) -> None:
    timed = phrases.timed(report)
    if not timed:
        return
    ui.heading(console, Text("what it costs and brings", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("engine", no_wrap=True)
    for title in ("acceptance length", "first branch", "ms per step", "tokens/s"):
        table.add_column(title, justify="right")
    for engine in timed:
        table.add_row(engine.name, *phrases.figures(engine))
    console.print(table)
    for cost in report.costs:
        ui.prose(console, Text.assemble((f"{cost.name}: ", "bold"), phrases.cost(cost)))
    if phrases.measured(report):
        ui.prose(console, Text(phrases.measured(report), style="dim"))


def _word(outcome: Outcome) -> Text:
    return Text(outcome, style=STYLES[outcome])
