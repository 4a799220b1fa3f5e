"""What every terminal renderer draws with; only these renderers import rich."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import PurePosixPath
from textwrap import dedent

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

# Prose in longer lines than this is hard to read, however wide the window is.
PROSE_WIDTH = 100
STYLES = {
    "tree": "bold green",
    "linear": "bold yellow",
    "unknown": "bold magenta",
    "absent": "dim",
}
_LEXERS = {".py": "python", ".cpp": "cpp", ".cu": "cpp", ".h": "cpp"}


def drawn(draw: Callable[[Console], None]) -> str:
    """What `draw` prints, with the width and the colours that stdout has."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        draw(console)
    return "\n".join(line.rstrip(" ") for line in capture.get().split("\n"))


def word(verdict: str) -> Text:
    """A verdict in its colour."""
    return Text(verdict, style=STYLES.get(verdict, ""))


def banner(console: Console, verdict: str, sentence: str) -> None:
    """Print what a person sees first: the verdict as one coloured word, and one sentence."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    style = f"{STYLES.get(verdict, 'bold')} reverse"
    grid.add_row(Text(f" {verdict.upper()} ", style=style), Text(sentence))
    console.print(grid, width=min(console.width, PROSE_WIDTH))


def prose(console: Console, text: Text, indent: int = 0) -> None:
    """Print wrapped text, kept to a readable width."""
    width = min(console.width, PROSE_WIDTH)
    console.print(Padding(text, (0, 0, 0, indent)), width=width)


def path(console: Console, text: str, indent: int, style: str = "cyan") -> None:
    """Print a path whole where it fits, else broken after slashes only."""
    for line in broken(text, console.width - indent):
        console.print(Text(" " * indent + line, style=style), soft_wrap=True)


def broken(text: str, width: int, after: str = "/") -> list[str]:
    """The path in as few lines as fit the width; a part longer than a line is left whole."""
    lines = [""]
    for part in re.split(f"(?<=[{re.escape(after)}])", text):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return lines


def pairs(console: Console, rows: list[tuple[str, str]]) -> None:
    """Print labels and values in two columns without lines; long paths break after slashes."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    room = console.width - max(len(label) for label, _ in rows) - 2
    for label, value in rows:
        grid.add_row(label, Text("\n".join(_folded(value, room))))
    console.print(grid)


def _folded(text: str, width: int) -> list[str]:
    """The text in lines that break at spaces, and inside a longer word after its separators."""
    lines: list[str] = []
    for word in text.split(" "):
        pieces = broken(word, width)
        if max(map(len, pieces)) > width:
            pieces = broken(word, width, "/.:")
        if lines and len(lines[-1]) + 1 + len(pieces[0]) <= width:
            lines[-1] += f" {pieces.pop(0)}"
        lines += pieces
    return lines


def quoted(text: str, file: str, line: int) -> RenderableType:
    """Source lines with their numbers, highlighted in the terminal's own colours."""
    lexer = _LEXERS.get(PurePosixPath(file).suffix, "text")
    return Syntax(
        dedent(text.expandtabs(4)).strip("\n"),
        lexer,
        theme="ansi_dark",
        background_color="default",
        line_numbers=True,
        start_line=line,
        word_wrap=True,
    )


def heading(console: Console, text: Text) -> None:
    """A blank line and a title over a thin rule."""
    console.print()
    console.print(text)
    console.print(Text("─" * min(console.width, PROSE_WIDTH), style="dim"))
