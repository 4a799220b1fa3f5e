"""Put a report together from what a target sent."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ... import __version__
from ...analyzers.errors import ConflictError, DdtreeError, TargetError, UsageError
from ...analyzers.install.names import printable
from ..errors import FarSideError, Unserved
from ..status import State
from .evidence import Evidence, Facts, Refusal
from .harness.plan import NO_TRITON
from .judge import cost, greedy, levels
from .judge.tokens import rule_of
from .options import Options
from .precondition import Ready
from .report import Level, Outcome, Report, Subject, Verdict

ENGINES = ("L3", "L4", "L5")
TINY = "tiny"
NOTHING = "vLLM gave nothing without speculation"


def report(
    options: Options,
    found: Ready,
    job: Mapping[str, Any],
    evidence: Evidence,
    log: tuple[str, ...],
    seconds: float,
) -> Report:
    """The report.

    Raises:
        ConflictError: the interpreter imports another vLLM than the target's.
        TargetError: a model is missing, or vLLM does not serve it even without speculation.
        UsageError: the prompts do not fit the model.
        FarSideError: vLLM does not even run without speculation, or nothing could be imported.
    """
    if evidence.refusal is not None:
        raise _refused(evidence.refusal, options, found)
    facts = _facts(evidence, found, log)
    imports = evidence.checks.get("imports", ())
    importable = all(check.outcome == Outcome.PASSED for check in imports)
    silent = importable and evidence.truth is None and bool(set(job["levels"]) & set(ENGINES))
    if silent and not {"L1", "L2"} & set(evidence.checks):
        raise _no_engine(evidence, options, found, log)
    truth = evidence.truth
    rule = None if truth is None else rule_of(truth, evidence.passes)
    why = f"{NOTHING}: {_reason(evidence)}" if silent else "no engine ran"
    judged = levels.judged(evidence, job["levels"], job["method"], rule, why)
    costs = cost.costs(evidence, interleaved=options.model is None)
    verdict = _verdict(judged, able=importable and not silent)
    l5 = next(level.outcome for level in judged if level.level == "L5")
    subject = _subject(options, found, job, facts, evidence)
    wrong = truth is not None and rule is not None and greedy.wrong(evidence, truth, rule)
    where, limits = _where(subject, options, evidence)
    pays, sentence = cost.pays(costs, l5, evidence, where, limits, wrong=wrong)
    return Report(
        tool_version=__version__,
        subject=subject,
        verdict=verdict,
        imports=imports,
        levels=judged,
        engines=cost.engines(evidence),
        costs=costs,
        pays=pays,
        sentence=sentence,
        rule="" if rule is None else rule.sentence(),
        seconds=round(seconds, 1),
        notes=_notes(found),
        log=log if verdict == Verdict.FAILED else (),
    )


def _facts(evidence: Evidence, found: Ready, log: tuple[str, ...]) -> Facts:
    facts = evidence.facts
    if facts is None:
        raise _died(evidence.failures.get("imports", "it said nothing"), found, log)
    if facts.location != str(found.site):
        raise ConflictError(
            f"{found.python} imports vLLM from {facts.location}, not from {found.site}",
            expected="the interpreter of the patched environment",
            hint=f"ddtree verify {found.command} --python PATH",
        )
    return facts


def _died(reason: str, found: Ready, log: tuple[str, ...]) -> FarSideError:
    failure = FarSideError(
        f"{found.python} could not be asked what is installed: {reason}",
        expected="an interpreter that imports torch and vLLM",
        hint=f"{found.python} -c 'import torch, vllm'",
    )
    failure.log = log
    return failure


def _reason(evidence: Evidence) -> str:
    reasons = (evidence.failures.get(part) for part in ("plain", "engines", "imports"))
    return next((reason for reason in reasons if reason), "no reason given")


def _no_engine(
    evidence: Evidence, options: Options, found: Ready, log: tuple[str, ...]
) -> FarSideError | Unserved:
    reason = _reason(evidence)
    if NO_TRITON in reason:
        other = f"ddtree verify {found.command} --runner v1"
    elif options.model is None:
        other = f"ddtree verify {found.command} --level L1 --level L2"
    else:
        # The tiny models tell whether it is the model or the install.
        other = f"ddtree verify {found.command}"
    own = options.model is not None and NO_TRITON not in reason
    kind = Unserved if own else FarSideError
    failure = kind(
        f"{NOTHING}: {reason}", expected="a vLLM that serves this model as it is", hint=other
    )
    failure.log = log
    return failure


def _refused(refusal: Refusal, options: Options, found: Ready) -> DdtreeError:
    """The error for models and prompts that cannot be used; the hint is what was asked, mended."""
    words = ["ddtree", "verify"]
    if options.model:
        words += ["--model", "MODEL" if refusal.missing else options.model]
    if options.drafter:
        words += ["--drafter", "DRAFTER" if refusal.missing else options.drafter]
    if options.method:
        words += ["--method", options.method]
    if not refusal.missing:
        words += ["--prompts", "FILE"]
    kind: type[DdtreeError] = TargetError if refusal.missing else UsageError
    return kind(
        printable(refusal.found),
        expected=printable(refusal.expected),
        # The target is quoted already.
        hint=f"{shlex.join(words[:2])} {found.command} {shlex.join(words[2:])}".rstrip(),
    )


def _verdict(judged: tuple[Level, ...], *, able: bool) -> Verdict:
    outcomes = {level.outcome for level in judged}
    if not able or Outcome.FAILED in outcomes:
        return Verdict.FAILED
    return Verdict.INCOMPLETE if Outcome.NOT_RUN in outcomes else Verdict.PASSED


def _subject(
    options: Options, found: Ready, job: Mapping[str, Any], facts: Facts, evidence: Evidence
) -> Subject:
    truth = evidence.truth
    return Subject(
        target=found.status.target,
        location=str(found.site),
        vllm=found.status.version,
        plan_id=found.status.plan_id,
        interpreter=str(found.python),
        python=facts.python,
        torch=facts.torch,
        triton=facts.triton,
        device=facts.device,
        runner=evidence.runner.name if evidence.runner else None,
        runner_asked=options.runner is not None,
        interpreted=evidence.runner is not None and evidence.runner.interpreted,
        model=options.model or TINY,
        drafter=options.drafter if options.model else TINY,
        method=job["method"],
        dtype=truth.dtype if truth else job["dtype"],
        budgets=tuple(job["budgets"]),
        prompts=evidence.prompts,
        tokens=options.tokens,
        seed=options.seed,
    )


def _where(subject: Subject, options: Options, evidence: Evidence) -> tuple[str, str]:
    """Model and device in words, and what they do not stand for."""
    eager = any(engine.eager for engine in evidence.engines)
    where = f"the {subject.model} model in {subject.dtype} on {subject.device}"
    where += " without graphs" if eager else ""
    missing = [] if evidence.facts and evidence.facts.cuda else ["a GPU"]
    missing += [] if options.model else ["a model of a useful size"]
    return where, f"; not measured on {' or '.join(missing)}" if missing else ""


def _notes(found: Ready) -> tuple[str, ...]:
    notes = found.status.notes
    if found.status.state == State.UNTRACKED:
        notes += (
            "No journal of this user tells of this patch (a bundle, another user, or a copy): its "
            "hooks and its runtime are exactly this ddtree's, and were verified.",
        )
    if found.status.outdated:
        notes += ("Another ddtree applied the patch; what it installed is what was verified.",)
    foreign = found.status.foreign
    if foreign:
        notes += (f"Changed by somebody else: {', '.join(foreign[:5])}.",)
    return notes
