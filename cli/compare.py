"""`ddtree inspect compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import (
    TARGET_HELP,
    NoCacheOption,
    QuietOption,
    TextFormat,
    TextFormatOption,
    complete_target,
)
from .output import emit

BeforeArgument = Annotated[
    str, typer.Argument(metavar="A", help=TARGET_HELP, autocompletion=complete_target)
]
AfterArgument = Annotated[
    str, typer.Argument(metavar="B", help="As A.", autocompletion=complete_target)
]


def compare(
    before: BeforeArgument,
    after: AfterArgument,
    format_: TextFormatOption = TextFormat.TERMINAL,
    quiet: QuietOption = False,
    no_cache: NoCacheOption = False,
) -> None:
    """Show what an upgrade would give or take away.

    Compares the verdicts, the evidence, the methods and the install facts of A and B.
    """
    from ..analyzers import compare as comparing
    from ..analyzers.inspect import inspect_target
    from .render.comparison import render
    from .render.progress import progress

    with progress(quiet=quiet) as say:
        one = inspect_target(before, cache=not no_cache, progress=say)
        other = inspect_target(after, cache=not no_cache, progress=say)
    emit(render(comparing.compare(one, other), format_, quiet=quiet))
