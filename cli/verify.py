"""`ddtree verify`."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..analyzers.errors import UsageError
from .options import (
    REMOTE_HELP,
    AcceptNewOption,
    SshConfigOption,
    SshTransport,
    SudoOption,
    TextFormat,
    TextFormatOption,
    TransportOption,
    complete_target,
)
from .output import complain, emit, expect_stdout
from .remote import far_of

if TYPE_CHECKING:
    from ..patches.far.remote import Far
    from ..patches.verify.options import Options
    from ..patches.verify.report import Report


class Level(enum.StrEnum):
    """The levels of proof."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"
    L5 = "L5"


class Method(enum.StrEnum):
    """vLLM's names for kinds of drafters."""

    DFLASH = "dflash"
    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MTP = "mtp"
    NGRAM = "ngram"


class Runner(enum.StrEnum):
    """vLLM's model runners."""

    V1 = "v1"
    V2 = "v2"


class Dtype(enum.StrEnum):
    """Types of the target's weights."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    AUTO = "auto"


TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="A virtual environment, a site-packages folder or a vllm package folder, patched by "
        f"ddtree. {REMOTE_HELP} Nothing: the environment of --python, else of $VIRTUAL_ENV, else "
        "of the running interpreter.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="The interpreter that runs the target; of another machine or a container, the "
        "interpreter or the environment there.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="The target model, as vLLM takes it. Nothing: a tiny one that comes with ddtree.",
    ),
]
DrafterOption = Annotated[
    str | None, typer.Option("--drafter", metavar="MODEL", help="The model that drafts for it.")
]
MethodOption = Annotated[
    Method | None,
    typer.Option(
        "--method",
        case_sensitive=False,
        help="The kind of drafter; nothing: what vLLM makes of --drafter.",
    ),
]
BudgetOption = Annotated[
    list[int] | None,
    typer.Option(
        "--budget",
        metavar="NODES",
        help="Nodes of a tree; may be repeated. Nothing: 32, and 7 for the tiny model.",
        show_default=False,
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(
        "--depth", min=1, help="Tokens that the drafter drafts; nothing: its block, else 4."
    ),
]
TokensOption = Annotated[
    int, typer.Option("--tokens", min=16, help="Tokens that every request generates.")
]
PromptsOption = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        metavar="FILE",
        help="A prompt per line: text, or JSON with a text or token ids.",
    ),
]
DtypeOption = Annotated[
    Dtype | None,
    typer.Option(
        "--dtype",
        case_sensitive=False,
        help="Of the target; nothing: float32 for the tiny one, else the model's own.",
    ),
]
LevelOption = Annotated[
    list[Level] | None,
    typer.Option(
        "--level",
        metavar="[L1|L2|L3|L4|L5]",
        case_sensitive=False,
        help="Run this level; may be repeated. Nothing: all.",
        show_default=False,
    ),
]
RunnerOption = Annotated[
    Runner | None,
    typer.Option(
        "--runner",
        case_sensitive=False,
        help="vLLM's model runner; nothing: the one that the target takes by itself. Without a "
        "GPU, v2 runs under Triton's interpreter, which takes many minutes.",
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of random trees and prompts.")]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="JSON",
        help="Further arguments of vLLM's LLM, such as '{\"gpu_memory_utilization\": 0.5}'.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "-q", "--quiet", help="No progress; of the text, only the verdict and whether a tree pays."
    ),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds that all of it may take.")
]


def verify(
    target: TargetArgument = None,
    python: PythonOption = None,
    model: ModelOption = None,
    drafter: DrafterOption = None,
    method: MethodOption = None,
    budget: BudgetOption = None,
    depth: DepthOption = None,
    tokens: TokensOption = 96,
    prompts: PromptsOption = None,
    dtype: DtypeOption = None,
    level: LevelOption = None,
    runner: RunnerOption = None,
    seed: SeedOption = 1,
    engine: EngineOption = None,
    timeout: TimeoutOption = 1800,
    format_: TextFormatOption = TextFormat.TERMINAL,
    quiet: QuietOption = False,
    transport: TransportOption = SshTransport.PARAMIKO,
    accept_new: AcceptNewOption = False,
    sudo: SudoOption = False,
    ssh_config: SshConfigOption = None,
) -> None:
    """Prove that a patched vLLM decodes greedily with trees, and say whether they pay.

    Runs in the target's own interpreter, on its installed runtime and kernels: L1 the walk and
    the builds, L2 the kernels, L3 every node's logits, L4 width 1 beside the stock chain, L5 the
    engine's output. Exits 1 if a level fails.
    """
    from ..patches.verify.options import Options
    from .render.verify import exit_code, render

    expect_stdout()
    options = Options(
        target=target,
        python=python,
        model=model,
        drafter=drafter,
        method=method,
        budgets=tuple(budget or ()),
        depth=depth,
        tokens=tokens,
        prompts=prompts,
        dtype=dtype,
        levels=tuple(level or Level),
        runner=runner,
        seed=seed,
        engine=_engine(engine),
        timeout=timeout,
    )
    far = far_of(target, python, transport, accept_new, sudo, timeout, ssh_config)
    report = _verified(options, far, quiet=quiet)
    emit(render(report, format_, quiet=quiet))
    raise typer.Exit(exit_code(report))


def _verified(options: Options, far: Far | None, *, quiet: bool) -> Report:
    """The report; what the target printed last goes to stderr if there is none."""
    from ..patches.errors import FarSideError, Unserved
    from ..patches.verify.perform import verify as perform
    from .render.progress import progress
    from .render.text import clean

    try:
        with progress(quiet=quiet, lines=True) as say:
            return perform(options, say, far)
    except (FarSideError, Unserved) as failure:
        complain("".join(f"target: {clean(line)}\n" for line in failure.log))
        raise


def _engine(text: str | None) -> dict[str, Any]:
    """The arguments of `--engine`.

    Raises:
        UsageError: it is no JSON object.
    """
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            f"--engine {text!r} is no JSON object",
            expected="arguments of vLLM's LLM by name",
            hint="ddtree verify --help",
        )
    return found
