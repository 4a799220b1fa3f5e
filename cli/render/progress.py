"""Progress on stderr: a spinner for a person, lines for a log of what takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..output import complain
from .text import clean


@contextmanager
def progress(*, quiet: bool, lines: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done now, if stderr is a terminal.

    Args:
        quiet: show nothing.
        lines: where stderr is no terminal, write each message with the time that has passed.
    """
    if not quiet and lines and not _is_terminal():
        began = time.monotonic()

        def write(message: str) -> None:
            minutes, seconds = divmod(int(time.monotonic() - began), 60)
            complain(f"[{minutes}:{seconds:02}] {clean(message)}\n")

        yield write
        return
    if quiet or not _is_terminal():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    def line(message: str) -> Text:
        return Text(clean(message), no_wrap=True, overflow="ellipsis")

    with Console(stderr=True).status(line("inspecting")) as status:
        yield lambda message: status.update(line(message))


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
