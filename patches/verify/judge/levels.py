"""The five levels of proof."""

from __future__ import annotations

from collections.abc import Sequence

from ..evidence import Evidence
from ..report import Check, Level, Outcome
from . import greedy, nodes, stock
from .tokens import Rule

CLAIMS = {
    "L1": "the walk and the builds are right",
    "L2": "the kernels are right",
    "L3": "every node saw exactly its ancestors",
    "L4": "a tree of width 1 is the stock chain",
    "L5": "the engine's output is greedy decoding",
}


def judged(
    evidence: Evidence,
    wanted: Sequence[str],
    method: str | None,
    rule: Rule | None,
    why: str = "no engine ran",
) -> tuple[Level, ...]:
    """Every level, those that were not asked for as not run; `why` no engine ran, if none did."""
    return tuple(
        _level(name, evidence, method, rule, why)
        if name in wanted
        else Level(name, claim, Outcome.NOT_RUN, "not asked for", ())
        for name, claim in CLAIMS.items()
    )


def _level(name: str, evidence: Evidence, method: str | None, rule: Rule | None, why: str) -> Level:
    part = name if name in ("L1", "L2") else "engines"
    failure = evidence.failures.get(part, "")
    checks: tuple[Check, ...] = evidence.checks.get(name, ())
    if name not in ("L1", "L2"):
        if evidence.truth is None or rule is None:
            return Level(name, CLAIMS[name], Outcome.NOT_RUN, why, ())
        if name == "L4":
            reason = stock.why_not(evidence, method)
            if reason:
                return Level(name, CLAIMS[name], Outcome.NOT_RUN, reason, ())
            checks = stock.checks(evidence, evidence.truth, rule)
        elif name == "L3":
            checks = nodes.checks(evidence, evidence.truth)
        else:
            checks = greedy.checks(evidence, evidence.truth, rule)
    if not checks or (failure and name in ("L1", "L2")):
        return Level(name, CLAIMS[name], Outcome.FAILED, failure or "nothing came back", checks)
    # What is wrong comes before what proves nothing.
    wrong = sorted(
        (check for check in checks if check.outcome == Outcome.FAILED), key=lambda one: one.vacuous
    )
    outcome = Outcome.FAILED if wrong else Outcome.PASSED
    reason = ""
    if wrong:
        name_, detail = wrong[0].name, wrong[0].detail
        reason = f"{name_}: {detail}" if wrong[0].vacuous else detail
    return Level(name, CLAIMS[name], outcome, reason, checks)
