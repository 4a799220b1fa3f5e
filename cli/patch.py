"""`ddtree patch`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..analyzers.errors import UsageError
from ..patches.way import Way
from .host import PythonOption
from .options import (
    REMOTE_HELP,
    TARGET_HELP,
    AcceptNewOption,
    SshConfigOption,
    SshTransport,
    SudoOption,
    TextFormat,
    TextFormatOption,
    TimeoutOption,
    TransportOption,
    complete_target,
)
from .output import complain, emit, expect_stdout
from .remote import far_of

if TYPE_CHECKING:
    from ..patches.far.remote import Far
    from ..patches.perform import Options, Outcome
    from ..patches.plan import Plan
    from ..patches.status import Status

TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help=f"{TARGET_HELP} {REMOTE_HELP} Nothing: the environment of --python, else of "
        "$VIRTUAL_ENV, else of the running interpreter.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
ApplyOption = Annotated[bool, typer.Option("--apply", help="Execute the plan.")]
RevertOption = Annotated[bool, typer.Option("--revert", help="Give every byte back.")]
StatusOption = Annotated[bool, typer.Option("--status", help="Say whether it is patched.")]
BundleOption = Annotated[
    Path | None,
    typer.Option(
        "--bundle",
        metavar="DIR",
        help="Write a folder that patches such an install without ddtree, in an image build.",
    ),
]
AsOption = Annotated[
    Way | None,
    typer.Option(
        "--as",
        help="How the hooks get into vLLM: by edits of its files (usual), or by a plug-in that "
        "assigns them whenever vLLM starts and changes no file of it.",
        show_default=False,
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Although processes run from the environment, it holds several vLLM installs, or the "
        "target is a source checkout.",
    ),
]
LocalEditsOption = Annotated[
    bool,
    typer.Option(
        "--allow-local-edits",
        help="Although somebody else edited files that get hooked: what was put into them stays, "
        "also with --revert.",
    ),
]
ImportsOption = Annotated[
    bool,
    typer.Option(
        "--check-imports",
        help="With --apply: import the edited modules before and after, which takes as long as "
        "vLLM needs; else they are compiled, and the runtime alone is imported.",
    ),
]
PlanIdOption = Annotated[
    str | None,
    typer.Option("--plan", metavar="ID", help="Execute this plan; refuse if it is another now."),
]


def patch(
    target: TargetArgument = None,
    python: PythonOption = None,
    apply: ApplyOption = False,
    revert: RevertOption = False,
    status: StatusOption = False,
    bundle: BundleOption = None,
    plan: PlanIdOption = None,
    as_: AsOption = None,
    yes: YesOption = False,
    force: ForceOption = False,
    allow_local_edits: LocalEditsOption = False,
    check_imports: ImportsOption = False,
    format_: TextFormatOption = TextFormat.TERMINAL,
    transport: TransportOption = SshTransport.PARAMIKO,
    accept_new: AcceptNewOption = False,
    sudo: SudoOption = False,
    timeout: TimeoutOption = None,
    ssh_config: SshConfigOption = None,
) -> None:
    """Make verification a tree in an installed vLLM, reversibly, here or on another machine.

    Without --apply, --revert, --status or --bundle: the plan, and nothing of it is done. Whatever
    is asked, a change that was interrupted is finished or taken back first.
    """
    from ..patches.perform import Options
    from .render.patch import exit_code, render

    expect_stdout()
    flags = {"apply": apply, "revert": revert, "status": status, "bundle": bundle is not None}
    chosen = _chosen([name for name, given in flags.items() if given])
    _refuse_vain(chosen, plan=plan, check_imports=check_imports, way=as_)
    ask = chosen in ("apply", "revert") and not yes
    far = far_of(target, python, transport, accept_new, sudo, timeout, ssh_config)
    which = _named(target, python) if far is None else far.words
    agree = _asking(chosen, format_, (*which, *(as_.options if as_ else ()))) if ask else _agreed
    options = Options(
        target,
        python,
        force=force,
        local_edits=allow_local_edits,
        imports=check_imports,
        plan_id=plan,
        agree=agree,
        way=as_,
    )
    outcome = _run(chosen, options, bundle) if far is None else _sent(chosen, far, options, bundle)
    emit(render(outcome, format_))
    raise typer.Exit(exit_code(outcome))


def _chosen(given: list[str]) -> str:
    if len(given) > 1:
        raise UsageError(
            f"--{given[0]} and --{given[1]} are both given",
            expected="at most one of --apply, --revert, --status and --bundle",
            hint="ddtree patch --help",
        )
    return given[0] if given else "plan"


def _refuse_vain(chosen: str, *, plan: str | None, check_imports: bool, way: Way | None) -> None:
    if way is not None and chosen in ("revert", "status"):
        raise UsageError(
            f"--as {way} is given with --{chosen}, which finds out how the install is patched",
            expected="--as with a plan, --apply or --bundle",
            hint="ddtree patch --help",
        )
    if plan is not None and chosen not in ("apply", "bundle"):
        raise UsageError(
            f"--plan {plan} is given, and nothing to do with it",
            expected="--plan with --apply or --bundle",
            hint="ddtree patch --help",
        )
    if check_imports and chosen != "apply":
        raise UsageError(
            "--check-imports is given, and nothing is applied",
            expected="--check-imports with --apply",
            hint="ddtree patch --help",
        )


def _run(chosen: str, options: Options, bundle: Path | None) -> Outcome:
    from ..patches import perform

    if bundle is not None:
        return perform.bundle(options, bundle)
    actions = {
        "plan": perform.plan,
        "apply": perform.apply,
        "revert": perform.revert,
        "status": perform.status,
    }
    return actions[chosen](options)


def _sent(chosen: str, far: Far, options: Options, bundle: Path | None) -> Outcome:
    from ..patches.far import remote

    if bundle is not None:
        return remote.bundle(far, options, bundle)
    actions = {
        "plan": remote.plan,
        "apply": remote.apply,
        "revert": remote.revert,
        "status": remote.status,
    }
    return actions[chosen](far, options)


def _somebody() -> bool:
    """Whether a person can answer."""
    return sys.stdin is not None and sys.stdin.isatty()


def _agreed(_: Plan | Status) -> None:
    """Nobody is asked."""


def _named(target: str | None, python: Path | None) -> tuple[str, ...]:
    """How an install of this machine is named on the command line."""
    return (*([target] if target else []), *(["--python", str(python)] if python else []))


def _asking(
    chosen: str, format_: TextFormat, which: Sequence[str]
) -> Callable[[Plan | Status], None]:
    """A function that shows what is about to happen, and asks.

    Raises:
        UsageError: there is nobody to ask; or, from the function, the answer is no.
    """
    command = shlex.join(["ddtree", "patch", *which, f"--{chosen}"])
    if format_ != TextFormat.TERMINAL or not _somebody():
        raise UsageError(
            f"--{chosen} asks before it writes, and there is nobody to ask",
            expected="--yes in scripts",
            hint=f"{command} --yes",
        )

    def ask(about: Plan | Status) -> None:
        from .render.patch import question

        complain(question(about))
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise UsageError(
                "the answer was no; nothing was written",
                expected="y to go on",
                hint=command,
            )

    return ask
