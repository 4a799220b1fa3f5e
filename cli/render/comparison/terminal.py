"""The comparison for a person at a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....analyzers.compare import Comparison
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
            defaults = [(path.path.value, phrases.default(path)) for path in comparison.paths]
            _pairs(console, "default", [(path, text) for path, text in defaults if text])
            _pairs(console, "methods", [(m.name, phrases.values(m)) for m in comparison.methods])
            facts = [(fact.name, phrases.fact(fact)) for fact in comparison.facts]
            lists = [(change.name, phrases.counts(change)) for change in comparison.lists]
            _pairs(console, "install", facts + lists)
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
    for path in comparison.paths:
        table.add_row(path.path.value, "total", *_cells(path.before, path.after))
        for stage in path.stages:
            table.add_row("", stage.stage.value, *_cells(stage.before, stage.after))
        table.add_section()
    console.print(table)


def _cells(
    before: StageVerdict | Verdict | None, after: StageVerdict | Verdict | None
) -> tuple[Text, Text]:
    one, other = phrases.verdict(before), phrases.verdict(after)
    # The eye should fall on what changes.
    return (ui.word(one), ui.word(other)) if before != after else (Text(one), Text(other, "dim"))


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
