"""What trees cost and bring, beside the stock chain of the same drafter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from ..evidence import Ended, Evidence, Stretch
from ..report import Cost, Engine, Outcome, Pays

FEWEST = 10
SIGNIFICANT = 0.05


def engines(evidence: Evidence) -> tuple[Engine, ...]:
    """Every engine with its figures."""
    return tuple(_engine(one, evidence) for one in evidence.engines)


def costs(evidence: Evidence, *, interleaved: bool) -> tuple[Cost, ...]:
    """Every engine with a drafter's trees beside the chain."""
    chain = evidence.engine("chain")
    if chain is None:
        return ()
    made = (
        _cost(one, chain, evidence, interleaved=interleaved)
        for one in evidence.engines
        if one.role in ("width1", "tree")
    )
    return tuple(cost for cost in made if cost is not None)


def sign_test(first: int, pairs: int) -> float:
    """Two-sided p of `first` or as extreme a number out of `pairs` fair coins."""
    if not pairs:
        return 1.0
    extreme = min(first, pairs - first)
    tail = sum(math.comb(pairs, number) for number in range(extreme + 1))
    return min(1.0, math.ldexp(tail, 1 - pairs))


def acceptance(stretches: Sequence[Stretch]) -> float | None:
    """Tokens per verification, the bonus token included."""
    verifications = sum(part.verifications for part in stretches)
    if not verifications:
        return None
    return 1 + sum(part.accepted for part in stretches) / verifications


def _tokens(evidence: Evidence, engine: str) -> list[int]:
    """Tokens of every timed stretch of an engine."""
    return [
        sum(map(len, one.tokens))
        for one in evidence.passes
        if one.engine == engine and one.name.startswith("stretch ")
    ]


def _engine(one: Ended, evidence: Evidence) -> Engine:
    steps = [part.step_seconds for part in one.stretches if part.step_seconds is not None]
    seconds = sum(part.seconds for part in one.stretches)
    return Engine(
        name=one.name,
        role=one.role,
        budget=one.budget,
        acceptance_length=acceptance(one.stretches),
        first_branch_length=one.first_branch_length,
        verifications=sum(part.verifications for part in one.stretches),
        step_ms=1000 * median(steps) if steps else None,
        tokens_per_second=sum(_tokens(evidence, one.name)) / seconds if seconds else None,
        branches=one.branches,
        fallbacks=dict(one.fallbacks),
        start_seconds=one.start_seconds,
    )


def _cost(one: Ended, chain: Ended, evidence: Evidence, *, interleaved: bool) -> Cost | None:
    pairs = list(zip(one.stretches, chain.stretches, strict=False))
    steps = [
        mine.step_seconds / theirs.step_seconds
        for mine, theirs in pairs
        if mine.step_seconds and theirs.step_seconds
    ]
    rates = [theirs.seconds / mine.seconds for mine, theirs in pairs if mine.seconds > 0]
    if min(len(steps), len(rates)) < FEWEST:
        return None
    faster = sum(rate > 1 for rate in rates)
    needed = [sum(part.verifications for part in x.stretches) for x in (one, chain)]
    return Cost(
        name=one.name,
        budget=one.budget,
        pairs=len(rates),
        step_ratio=median(steps),
        step_p=sign_test(sum(step > 1 for step in steps), len(steps)),
        rate_ratio=median(rates),
        rate_p=sign_test(faster, len(rates)),
        faster=faster,
        steps_saved=1 - needed[0] / needed[1] if needed[1] else 0.0,
        interleaved=interleaved,
    )


def pays(
    found: Sequence[Cost],
    outcome: Outcome,
    evidence: Evidence,
    where: str,
    limits: str,
    *,
    wrong: bool,
) -> tuple[Pays, str]:
    """Whether a tree pays, and the sentence that says so.

    Args:
        found: costs of all engines.
        outcome: of L5.
        evidence: what was sent.
        where: model and device, as a reader knows them.
        limits: what was not measured; empty if nothing has to be said.
        wrong: whether the output of an engine with trees is not greedy decoding.
    """
    trees = [cost for cost in found if cost.name.startswith("tree")]
    if wrong:
        return (
            Pays.NO,
            "A tree does not pay here: its output is not greedy decoding, whatever its speed.",
        )
    if evidence.runner is not None and evidence.runner.interpreted:
        return Pays.NOT_MEASURED, (
            "Whether a tree pays was not measured: Triton's interpreter ran the model runner's "
            "kernels, and its times say nothing of a GPU's."
        )
    gpu = evidence.facts is not None and evidence.facts.cuda
    if gpu and any(engine.eager for engine in evidence.engines):
        return Pays.NOT_MEASURED, (
            "Whether a tree pays was not measured: enforce_eager hides its cost on a GPU."
        )
    if not trees:
        why = "L5 was not run" if outcome == Outcome.NOT_RUN else _why_no_costs(evidence)
        return Pays.NOT_MEASURED, f"Whether a tree pays was not measured: {why}."
    best = max(trees, key=lambda cost: cost.rate_ratio)
    word, start = _decided(best, len(trees))
    counted = f"{best.faster} of {best.pairs} stretches faster, p = {best.rate_p:.2g}"
    numbers = f"{best.rate_ratio:.2f} times the tokens per second of the same drafter's chain"
    return word, f"{start} {numbers} ({counted}) with {where}{limits}."


def _decided(best: Cost, number: int) -> tuple[Pays, str]:
    which = (
        f"the best of {number} budgets, {best.budget}," if number > 1 else f"budget {best.budget}"
    )
    if best.rate_p >= SIGNIFICANT:
        return Pays.UNDECIDED, f"Whether a tree pays here is undecided: {which} gives"
    if best.rate_ratio > 1:
        return Pays.YES, f"A tree pays here: {which} gives"
    return Pays.NO, f"A tree does not pay here: {which} gives"


def _why_no_costs(evidence: Evidence) -> str:
    if "chain" in evidence.failures:
        return f"the stock chain does not run ({evidence.failures['chain']})"
    dead = [reason for name, reason in evidence.failures.items() if name.startswith("tree")]
    if dead:
        return f"the engine with trees does not run ({dead[0]})"
    return f"there were fewer than {FEWEST} pairs of stretches"
