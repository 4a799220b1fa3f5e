"""`ddtree inspect host`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    TARGET_HELP,
    Format,
    FormatOption,
    NoCacheOption,
    QuietOption,
    Required,
    complete_target,
)
from .output import emit

TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help=f"{TARGET_HELP} Nothing: the environment of --python, else of $VIRTUAL_ENV, "
        "else of the running interpreter.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
PythonOption = Annotated[
    Path | None,
    typer.Option("--python", metavar="PATH", help="The interpreter whose environment to inspect."),
]
RequireOption = Annotated[
    Required | None, typer.Option("--require", help="Exit 1 when the total verdict is another one.")
]


def host(
    target: TargetArgument = None,
    python: PythonOption = None,
    format_: FormatOption = Format.TERMINAL,
    require: RequireOption = None,
    quiet: QuietOption = False,
    no_cache: NoCacheOption = False,
) -> None:
    """Say with proof what an installed vLLM verifies.

    It drafts tokens and then verifies them: along one chain, or along a tree. Verdicts come from
    the code alone: nothing is imported, and no version number is looked up.
    """
    from ..analyzers.inspect import inspect_target
    from .render.progress import progress
    from .render.report import render

    with progress(quiet=quiet) as say:
        report = inspect_target(target, python=python, cache=not no_cache, progress=say)
    code = int(require is not None and report.verdict.value != require.value)
    emit(render(report, format_, quiet=quiet, exit_code=code))
    raise typer.Exit(code)
