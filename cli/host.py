"""`ddtree inspect host`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..analyzers.errors import UsageError
from .options import (
    REMOTE_HELP,
    TARGET_HELP,
    AcceptNewOption,
    Format,
    FormatOption,
    NoCacheOption,
    QuietOption,
    Required,
    SshConfigOption,
    SshTransport,
    SudoOption,
    TimeoutOption,
    TransportOption,
    complete_target,
)
from .output import emit
from .remote import settings_of

if TYPE_CHECKING:
    from ..analyzers.remote.hosts import Entry, Outcome
    from ..analyzers.transports.settings import Settings

TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        help=f"{TARGET_HELP} {REMOTE_HELP} Nothing: the environment of --python, else of "
        "$VIRTUAL_ENV, else of the running interpreter.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="The interpreter whose environment to inspect; of another machine or a container, "
        "the interpreter or the environment there.",
    ),
]
HostsOption = Annotated[
    Path | None,
    typer.Option(
        "--hosts",
        metavar="FILE",
        help="More targets, one a line, and behind it the environment there if need be; a bare "
        "name is a host behind ssh.",
        show_default=False,
    ),
]
RequireOption = Annotated[
    Required | None, typer.Option("--require", help="Exit 1 when the total verdict is another one.")
]


def host(
    targets: TargetsArgument = None,
    python: PythonOption = None,
    hosts: HostsOption = None,
    format_: FormatOption = Format.TERMINAL,
    require: RequireOption = None,
    quiet: QuietOption = False,
    no_cache: NoCacheOption = False,
    transport: TransportOption = SshTransport.PARAMIKO,
    accept_new: AcceptNewOption = False,
    sudo: SudoOption = False,
    timeout: TimeoutOption = None,
    ssh_config: SshConfigOption = None,
) -> None:
    """Say with proof what an installed vLLM verifies, here or on other machines.

    It drafts tokens and then verifies them: along one chain, or along a tree. Verdicts come from
    the code alone: nothing is imported, and no version number is looked up.
    """
    settings = settings_of(transport, accept_new, sudo, timeout, ssh_config)
    named = targets or []
    if hosts is not None or len(named) > 1:
        _several(_entries(named, hosts, python), settings, format_, require, quiet, no_cache)
    _one(named[0] if named else None, python, settings, format_, require, quiet, no_cache)


def _one(
    target: str | None,
    python: Path | None,
    settings: Settings,
    format_: Format,
    require: Required | None,
    quiet: bool,
    no_cache: bool,
) -> None:
    from ..analyzers.inspect import inspect_target
    from .render.progress import progress
    from .render.report import render

    with progress(quiet=quiet) as say:
        report = inspect_target(
            target, python=python, cache=not no_cache, progress=say, settings=settings
        )
    code = int(require is not None and report.verdict.value != require.value)
    emit(render(report, format_, quiet=quiet, exit_code=code))
    raise typer.Exit(code)


def _several(
    entries: Sequence[Entry],
    settings: Settings,
    format_: Format,
    require: Required | None,
    quiet: bool,
    no_cache: bool,
) -> None:
    from ..analyzers.remote.hosts import inspect_hosts
    from .render.hosts import render
    from .render.progress import progress

    with progress(quiet=quiet) as say:
        outcomes = inspect_hosts(entries, settings, cache=not no_cache, progress=say)
    codes = [_code(outcome, require) for outcome in outcomes]
    emit(render(outcomes, format_, codes, quiet=quiet))
    raise typer.Exit(max(codes))


def _entries(named: Sequence[str], hosts: Path | None, python: Path | None) -> tuple[Entry, ...]:
    from ..analyzers.remote.hosts import Entry, read_hosts

    if python is not None:
        raise UsageError(
            "--python is given for several targets",
            expected="one target; a file of --hosts names the environment of each",
            hint="ddtree inspect host --help",
        )
    listed = read_hosts(hosts) if hosts is not None else ()
    return tuple(dict.fromkeys([*(Entry(target) for target in named), *listed]))


def _code(outcome: Outcome, require: Required | None) -> int:
    from ..analyzers.errors import DdtreeError

    if isinstance(outcome.result, DdtreeError):
        return outcome.result.exit_code
    return int(require is not None and outcome.result.verdict.value != require.value)
