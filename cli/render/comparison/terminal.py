"""The comparison for a person at a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....analyzers.compare import Comparison, SetChange
from ....analyzers.result import Evidence, StageVerdict, Verdict
from .. import console as ui
from ..text import cleaned
from . import phrases


def render(comparison: Comparison, *, quiet: bool) -> str:
    """Both verdicts first, then the stages side by side, then what else differs."""
    comparison = cleaned(comparison)

    def draw(console: Console) -> None:
        ui.banner(console, comparison.after.verdict, comparison.summary)
        if not quiet:
            _table(console, comparison)
            _pairs(console, "methods", _values(comparison.methods))
            facts = [(fact.name, phrases.fact(fact)) for fact in comparison.facts]
            _pairs(console, "install", facts + _values(comparison.lists))
            _evidence(console, "evidence lost", comparison.lost)
            _evidence(console, "evidence gained", comparison.gained)
            _moved(console, comparison)

    return ui.drawn(draw)


def _table(console: Console, comparison: Comparison) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("path", "stage"):
        table.add_column(title, no_wrap=True)
    for side in (comparison.before, comparison.after):
        table.add_column(Text(phrases.side(side)), overflow="fold")
    table.add_column("default")
    for path in comparison.paths:
        for stage in path.stages:
            cells = _cells(stage.before, stage.after)
            table.add_row(path.path.value, stage.stage.value, *cells, "")
        totals = _cells(path.before, path.after)
        table.add_row(path.path.value, "total", *totals, Text(phrases.default(path)))
        table.add_section()
    console.print(table)


def _cells(
    before: StageVerdict | Verdict | None, after: StageVerdict | Verdict | None
) -> tuple[Text, Text]:
    one, other = phrases.verdict(before), phrases.verdict(after)
    # The eye should fall on what changes.
    return (ui.word(one), ui.word(other)) if before != after else (Text(one), Text(other, "dim"))


def _values(changes: tuple[SetChange, ...]) -> list[tuple[str, str]]:
    return [(change.name, phrases.values(change, limit=10)) for change in changes]


def _pairs(console: Console, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        ui.heading(console, Text(title, style="bold"))
        ui.pairs(console, rows)


def _evidence(console: Console, title: str, evidence: tuple[Evidence, ...]) -> None:
    if evidence:
        ui.heading(console, Text(title, style="bold"))
    for item in evidence:
        ui.path(console, f"{item.file}:{item.line}", indent=0)
        where = f"{item.path} {item.stage}, {item.symbol}: "
        sentence = Text.assemble((where, "dim"), ui.word(item.supports), f": {item.message}")
        ui.prose(console, sentence, indent=2)


def _moved(console: Console, comparison: Comparison) -> None:
    if comparison.moved:
        ui.heading(console, Text("evidence moved", style="bold"))
    for moved in comparison.moved:
        item = moved.after
        ui.prose(console, Text(f"{item.path} {item.stage}, {item.symbol}"))
        ui.path(console, phrases.move(moved), indent=2)
