"""Sentences and figures that every form of the report shares."""

from __future__ import annotations

from collections.abc import Iterator

from ....patches.verify.report import (
    NOT_ASKED,
    Check,
    Cost,
    Engine,
    Level,
    Outcome,
    Report,
    Subject,
    Verdict,
)

SUMMARIES = {
    Verdict.PASSED: "all levels passed: with trees, the output is greedy decoding",
    Verdict.FAILED: "do not serve with this patch",
    "vacuous": (
        "nothing was found wrong, and on these prompts no mistake would have been noticed; give "
        "more prompts or longer ones (--prompts, --tokens)"
    ),
    Verdict.INCOMPLETE: "what was run passed, and not everything was run",
}

MEASURED = (
    "An engine's figures are the median step and the sum over all of its own timed stretches, and "
    "those of its first branch come from all that it decoded; "
    "ratios are medians over pairs of the same stretch, so they are not quotients of the figures."
)


def headline(report: Report) -> str:
    """What became of the whole, in one sentence."""
    failed = [level.level for level in report.levels if level.outcome == Outcome.FAILED]
    missing = [level.level for level in report.levels if level.outcome == Outcome.NOT_RUN]
    if broken(report.imports):
        failed = ["imports", *failed]
    open_ = [level.level for level in report.levels if level.proved_nothing]
    if failed and failed == open_:
        return f"{', '.join(failed)} proved nothing: {SUMMARIES['vacuous']}"
    if failed:
        return f"{', '.join(failed)} failed: {SUMMARIES[Verdict.FAILED]}"
    if missing and report.verdict == Verdict.FAILED:
        asked = [one.level for one in report.levels if one.reason != NOT_ASKED]
        missing = [name for name in missing if name in asked]
        return f"{', '.join(missing)} not run: vLLM does not serve this model as it is"
    if missing:
        return f"{SUMMARIES[report.verdict]}: {', '.join(missing)}"
    return SUMMARIES[report.verdict]


def broken(checks: tuple[Check, ...]) -> list[Check]:
    """The checks that failed."""
    return [check for check in checks if check.outcome == Outcome.FAILED]


def imports(report: Report) -> tuple[Outcome, str]:
    """Whether all edited modules import, and a sentence."""
    wrong = broken(report.imports)
    if wrong:
        return Outcome.FAILED, f"{wrong[0].name}: {wrong[0].detail}"
    number = len(report.imports)
    return Outcome.PASSED, f"{number} of {number}, each with the runtime's hooks"


def level(found: Level) -> str:
    """Why a level failed or was not run, or how many checks it passed."""
    if found.reason:
        return found.reason
    passed = sum(check.outcome == Outcome.PASSED for check in found.checks)
    open_ = [check.name for check in found.checks if check.outcome == Outcome.NOT_RUN]
    return f"{passed} check{'s' * (passed != 1)}" + (
        f"; not covered: {', '.join(open_)}" if open_ else ""
    )


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """What was verified, and with what."""
    subject = report.subject
    yield "target", f"vLLM {subject.vllm or '(version unknown)'}: {subject.location}"
    yield "plan", subject.plan_id or "none"
    triton = f", triton {subject.triton}" if subject.triton else ", no triton"
    yield "python", f"{subject.python}, torch {subject.torch}{triton}: {subject.interpreter}"
    yield "device", subject.device
    yield "runner", runner(subject)
    yield "model", f"{subject.model} in {subject.dtype}"
    drafter = subject.drafter or "none"
    yield "drafter", f"{drafter}, {subject.method or 'method by vLLM'}"
    budgets = ", ".join(map(str, subject.budgets))
    yield "trees", f"budgets {budgets}"
    each = f"{subject.prompts}, {subject.tokens} tokens each"
    yield "prompts", f"{each if subject.prompts else 'none were used'}, seed {subject.seed}"
    yield "time", f"{report.seconds:.0f} s"


def runner(subject: Subject) -> str:
    """The model runner, who chose it, and how its kernels ran."""
    if subject.runner is None:
        return "no engine was started"
    chosen = "asked for" if subject.runner_asked else "as this vLLM takes it"
    interpreted = ", its kernels under Triton's interpreter" if subject.interpreted else ""
    return f"{subject.runner} model runner, {chosen}{interpreted}"


def figures(engine: Engine) -> list[str]:
    """Acceptance length, that of the first branches alone, ms per step, tokens per second."""
    numbers = (
        (engine.acceptance_length, ".3f"),
        (engine.first_branch_length, ".3f"),
        (engine.step_ms, ".2f"),
        (engine.tokens_per_second, ".0f"),
    )
    return ["-" if number is None else f"{number:{form}}" for number, form in numbers]


def cost(found: Cost) -> str:
    """What an engine with trees costs and brings, beside the chain."""
    turns = "in turns" if found.interleaved else "one after another"
    return (
        f"{found.step_ratio:.2f} times the chain's cost per step (p = {found.step_p:.2g}), "
        f"{found.steps_saved:.0%} of its steps saved, {found.rate_ratio:.2f} times its tokens per "
        f"second (faster in {found.faster} of {found.pairs} stretches {turns}, "
        f"p = {found.rate_p:.2g})"
    )


def measured(report: Report) -> str:
    """How figures and ratios hang together; empty where there are not both."""
    return MEASURED if report.costs and timed(report) else ""


def timed(report: Report) -> list[Engine]:
    """The engines that have figures."""
    return [engine for engine in report.engines if engine.step_ms is not None]
