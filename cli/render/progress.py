"""Progress on stderr: a spinner for a person, nothing for a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .text import clean


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done now, if stderr is a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    def line(message: str) -> Text:
        return Text(clean(message), no_wrap=True, overflow="ellipsis")

    with Console(stderr=True).status(line("inspecting")) as status:
        yield lambda message: status.update(line(message))
