"""The rules for a person at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ....analyzers.result import Stage
from ...rulebook import RuleHelp
from .. import console as ui
from ..text import cleaned


def render(book: tuple[RuleHelp, ...], *, full: bool) -> str:
    """The rules by stage, or with `full` help and examples of each."""
    book = cleaned(book)

    def draw(console: Console) -> None:
        if full:
            for entry in book:
                _full(console, entry)
        else:
            _list(console, book)

    return ui.drawn(draw)


def _list(console: Console, book: tuple[RuleHelp, ...]) -> None:
    for stage in Stage:
        ui.heading(console, Text(stage.value, style="bold"))
        for entry in (one for one in book if one.stage == stage):
            console.print(_title(entry))
            ui.prose(console, Text(entry.summary), indent=2)


def _title(entry: RuleHelp) -> Text:
    return Text.assemble((entry.name, "cyan"), ("  shows ", "dim"), ui.word(entry.supports))


def _full(console: Console, entry: RuleHelp) -> None:
    console.print(Text.assemble(_title(entry), (f"  ({entry.stage})", "dim")))
    for paragraph in entry.help.split("\n\n"):
        console.print()
        ui.prose(console, Text(_reflowed(paragraph)))
    for title, examples in (("found in", entry.found), ("not found in", entry.not_found)):
        for text in examples:
            ui.heading(console, Text(title, style="bold"))
            console.print(Padding(ui.quoted(text, "example.py", 1), (0, 0, 0, 2)))


def _reflowed(paragraph: str) -> str:
    # Indented lines are lists or drawings: their line breaks mean something.
    lines = paragraph.split("\n")
    return paragraph if any(line.startswith(" ") for line in lines) else " ".join(lines)
