"""The report for a person at a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....analyzers.result import Call, Evidence, PathResult, Report, Stage, StageResult
from .. import console as ui
from .. import words
from ..text import cleaned


def render(report: Report, *, quiet: bool) -> str:
    """The verdict first, then facts, the stage-by-path table, the evidence, and the coverage."""
    report = cleaned(report)

    def draw(console: Console) -> None:
        ui.banner(console, report.verdict, report.summary)
        if not quiet:
            _facts(console, report)
            _table(console, report)
            _notes(console, report)
            _evidence(console, report)
            _methods(console, report)
            _coverage(console, report)

    return ui.drawn(draw)


def _facts(console: Console, report: Report) -> None:
    console.print()
    rows = words.facts(report.install, names=3)
    if report.target != report.install.location:
        rows.insert(0, ("target", report.target))
    ui.pairs(console, rows)


def _table(console: Console, report: Report) -> None:
    if not report.paths:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stage")
    for result in report.paths:
        table.add_column(_title(result, "\n"))
    for stage in Stage:
        table.add_row(stage.value, *(_cell(result.stages[stage]) for result in report.paths))
    table.add_section()
    table.add_row("total", *(ui.word(result.verdict) for result in report.paths))
    console.print(table)


def _title(result: PathResult, between: str) -> Text:
    default = words.default_word(result.default)
    parts = [(result.path.value, "bold"), (between + default if default else "", "not bold dim")]
    return Text.assemble(*parts)


def _cell(result: StageResult) -> Text:
    # Three paths must fit side by side on a narrow screen.
    shown = " ".join(result.evidence[:2])
    rest = len(result.evidence) - 2
    proof = f" {shown} +{rest}" if rest > 0 else f" {shown}"
    return Text.assemble(ui.word(result.verdict), (proof, "dim"))


def _notes(console: Console, report: Report) -> None:
    if report.notes:
        ui.pairs(console, [("note", note) for note in report.notes])


def _evidence(console: Console, report: Report) -> None:
    for section in words.sections(report):
        result = section.result
        title = _title(result, "  ") if result else Text(section.path.value, style="bold")
        ui.heading(console, title)
        if result:
            sentence = Text.assemble(ui.word(result.verdict), f": {result.summary}")
            ui.prose(console, sentence)
        for stage in section.stages:
            _stage(console, stage)


def _stage(console: Console, section: words.StageSection) -> None:
    found = section.result
    verdict = ui.word(found.verdict) if found else Text("not judged")
    head = Text.assemble((section.stage.value, "bold"), " ", verdict)
    console.print()
    if found and found.reason:
        head.append(f": {found.reason}")
    ui.prose(console, head)
    for item in section.evidence:
        _item(console, item)
        if words.says_more(item, section):
            ui.prose(console, Text.assemble(ui.word(item.supports), f": {item.message}"), indent=2)
        if callers := words.callers(item):
            _calls(console, callers)


def _item(console: Console, item: Evidence) -> None:
    console.print()
    ui.path(console, f"{item.file}:{item.line}", indent=2)
    name = Text.assemble((f"{item.id} in ", "dim"), item.symbol, (f"  {item.rule}", "dim"))
    ui.prose(console, name, indent=2)
    console.print(Padding(ui.quoted(item.quote, item.file, item.line), (0, 0, 0, 2)))


def _calls(console: Console, calls: tuple[Call, ...]) -> None:
    chain = " → ".join(call.symbol for call in calls)
    ui.prose(console, Text.assemble(("reached by ", "dim"), chain), indent=2)


def _methods(console: Console, report: Report) -> None:
    ui.heading(console, Text("methods offered", style="bold"))
    methods = report.methods
    rows = [
        ("speculative", ", ".join(methods.speculative) or "none found"),
        ("rejection", ", ".join(methods.rejection) or "none found"),
    ]
    ui.pairs(console, rows)


def _coverage(console: Console, report: Report) -> None:
    ui.heading(console, Text("coverage", style="bold"))
    ui.prose(console, Text(words.coverage_sentence(report.coverage)))
    for item in report.coverage.unreadable:
        ui.path(console, item.file, indent=2, style="magenta")
        ui.prose(console, Text(item.reason), indent=4)
