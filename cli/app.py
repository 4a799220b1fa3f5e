"""The `ddtree` command, and the only place where errors become exit codes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..analyzers.errors import DdtreeError, UsageError
from . import compare, host, patch, rules, verify
from .options import chosen_format, named_format
from .output import complain, emit
from .render import error
from .start import INTERRUPTED, begun

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


# What typer raises for a wrong command line; it exports subclasses alone.
_WrongCommandLine: type[Exception] = typer.BadParameter.__mro__[1]
_WORDS_KEY = "ddtree.words"


class ErrorsBecomeExitCodes(TyperGroup):
    """The root command group: what a command raises leaves the process as an exit code.

    0 done or clean; 1 a negative finding that was asked for; 2 usage; 3 target missing or
    unreachable; 4 drift or conflict, refused; 5 failed and rolled back; 6 recovery pending;
    130 interrupted.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what comes before the command; the whole line is kept for error messages."""
        ctx.meta[_WORDS_KEY] = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except _WrongCommandLine as failure:
            _unprefix(failure)
            _tell(_as_data(failure, args))
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; `ctx` is the click context of whichever typer is installed."""
        try:
            begun()
            return super().invoke(ctx)
        except _WrongCommandLine as failure:
            # Typer says it to a person by itself, and ends with 2.
            _unprefix(failure)
            _tell(_as_data(failure, ctx.meta[_WORDS_KEY]))
            raise
        except DdtreeError as failure:
            complain(error.as_text(failure))
            _tell(error.as_data(failure, chosen_format(ctx)))
            raise typer.Exit(failure.exit_code) from None
        except KeyboardInterrupt as interruption:
            said = f": {interruption}" if interruption.args else ""
            complain(f"interrupted{said}\n")
            raise typer.Exit(INTERRUPTED) from None


# Plain help: with rich markup it takes five times as long to print.
app = typer.Typer(
    cls=ErrorsBecomeExitCodes,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)
inspect = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(inspect, name="inspect", help="Prove from the installed code what a vLLM verifies.")
inspect.command("host")(host.host)
inspect.command("rules")(rules.rules)
inspect.command("compare")(compare.compare)
app.command("patch")(patch.patch)
app.command("verify")(verify.verify)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Inspect, patch and verify tree-structured speculative decoding in an installed vLLM."""
    if version:
        emit(f"ddtree {__version__}\n")
        raise typer.Exit


def _tell(text: str) -> None:
    """What a person was told already, for the machine that reads stdout, as far as that can be."""
    with contextlib.suppress(DdtreeError):
        emit(text)


def _unprefix(failure: Any) -> None:
    """Take out what typer's own parser puts before its messages, which says nothing to anybody."""
    failure.message = str(failure.message).removeprefix("Value error, ")


def _as_data(failure: Any, words: Sequence[str]) -> str:
    """A wrong command line in the machine's format that it asks for, as far as it is one."""
    about = getattr(failure, "param", None)
    if about is not None and "--format" in about.opts:
        return ""
    # The first word is whatever the process was started as.
    path = failure.ctx.command_path.split(" ")[1:] if failure.ctx else []
    command = " ".join(["ddtree", *path])
    told = UsageError(
        failure.format_message(),
        expected=f"a command line that {command} knows",
        hint=f"{command} --help",
    )
    return error.as_data(told, named_format(words))


def _last_resort(
    kind: type[BaseException], failure: BaseException, trace: TracebackType | None
) -> None:
    """The `sys.excepthook` for what nobody foresaw: a defect of ddtree, never of the target."""
    if os.environ.get("DDTREE_DEBUG") == "1":
        sys.__excepthook__(kind, failure, trace)
    else:
        complain(error.as_text(error.defect(kind, failure)))
    # Without this, Python exits with 1, which would read as a negative finding.
    raise SystemExit(DdtreeError.exit_code)


def main() -> None:
    """Run the command line of this process."""
    sys.excepthook = _last_resort
    # Not `app()`: that would put typer's own hook in the place of the last resort.
    typer.main.get_command(app)(prog_name="ddtree")
