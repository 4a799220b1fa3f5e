"""L5: what engines with trees put out is greedy decoding, and a wrong one would be noticed."""

from __future__ import annotations

from ..evidence import Ended, Evidence, Pass, Truth
from ..report import Check, Outcome
from .tokens import Rule, compared, diverged

PARTS = ("mask", "positions", "commit")
TREES = ("width1", "tree", "oracle")
# Why the runtime gives the harness's tree-free requests no tree.
FREED = "frequency penalty"


def checks(evidence: Evidence, truth: Truth, rule: Rule) -> tuple[Check, ...]:
    """The comparison of every engine, its controls, and what the passes covered."""
    engines = [engine for engine in evidence.engines if engine.role in TREES]
    names = {engine.name for engine in engines}
    dead = [
        Check(name, Outcome.FAILED, reason)
        for name, reason in evidence.failures.items()
        if name == "engines" or name.startswith(("tree", "oracle", "width"))
    ]
    found = [*dead, *(_output(evidence, truth, rule, name) for name in sorted(names))]
    found += [_plain(evidence, truth, rule), _free(evidence, truth, rule), *_branches(engines)]
    found += [_control(evidence, truth, rule, part) for part in PARTS]
    return (*found, *_covered(evidence, truth, engines))


def wrong(evidence: Evidence, truth: Truth, rule: Rule) -> bool:
    """Whether an engine whose runtime was whole put out what is not greedy decoding."""
    names = {engine.name for engine in evidence.engines if engine.role in TREES}
    passes = [one for one in evidence.passes if one.engine in names and one.without is None]
    return any(not rule.is_tie(one) for one in diverged(truth, passes))


def _output(evidence: Evidence, truth: Truth, rule: Rule, name: str) -> Check:
    passes = [
        pass_ for pass_ in evidence.passes
        if pass_.engine == name and pass_.without is None and not pass_.silent
    ]  # fmt: skip
    return _compared(truth, rule, name, passes)


def _plain(evidence: Evidence, truth: Truth, rule: Rule) -> Check:
    """Decoding without speculation agrees with itself, in another batch and on cached blocks."""
    passes = [pass_ for pass_ in evidence.passes if pass_.engine == "plain"]
    return _compared(truth, rule, "no speculation", passes)


def _compared(truth: Truth, rule: Rule, name: str, passes: list[Pass]) -> Check:
    apart = diverged(truth, passes)
    wide = [one for one in apart if not rule.is_tie(one)]
    said = f"{compared(passes)} tokens in {len(passes)} pass{'es' * (len(passes) != 1)}"
    if not passes:
        return Check(name, Outcome.FAILED, "nothing was decoded")
    if wide:
        detail = f"{said}: {len(wide)} requests are not greedy; {wide[0]}"
        return Check(name, Outcome.FAILED, detail)
    if apart:
        widest = max(one.lead for one in apart)
        detail = f"{said}: {len(apart)} requests part at near ties, the widest lead {widest:.2g}"
        return Check(name, Outcome.PASSED, detail)
    return Check(name, Outcome.PASSED, f"{said}, all equal")


def _free(evidence: Evidence, truth: Truth, rule: Rule) -> Check:
    """What has no tree agrees, even beside trees that are wrong on purpose."""
    name = "tree-free requests"
    beside = [one for one in evidence.passes if one.free]
    silent = [one for one in evidence.passes if one.silent]
    apart = [one for one in diverged(truth, beside) if one.free] + diverged(truth, silent)
    wide = [one for one in apart if not rule.is_tie(one)]
    told = {one.name for one in evidence.engines if FREED in one.fallbacks}
    said = f"{len(beside) + sum(len(one.tokens) for one in silent)} requests without trees"
    if wide:
        return Check(name, Outcome.FAILED, f"{said}: {wide[0]}")
    if not beside or {one.engine for one in beside} - told:
        return Check(name, Outcome.FAILED, f"{said}, but the runtime did not count them as such")
    return Check(name, Outcome.PASSED, f"{said} agree, also beside wrong trees")


def _branches(engines: list[Ended]) -> list[Check]:
    return [
        Check(
            f"branches of {engine.name}",
            Outcome.PASSED if engine.branches else Outcome.FAILED,
            f"{engine.branches} accepted nodes beyond the first branch"
            if engine.branches
            else "no accepted node is beyond the first branch, so nothing shows that one is right",
            vacuous=not engine.branches,
        )
        for engine in engines
        if engine.role in ("tree", "oracle")
    ]


def _control(evidence: Evidence, truth: Truth, rule: Rule, part: str) -> Check:
    name = f"without {part}"
    passes = [pass_ for pass_ in evidence.passes if pass_.without == part]
    if not passes:
        detail = "was not tried, so nothing shows that a mistake is noticed"
        return Check(name, Outcome.FAILED, detail, vacuous=True)
    bad = [one for one in diverged(truth, passes) if not one.free and not rule.is_tie(one)]
    requests = sum(len(one.tokens) - one.free for one in passes)
    detail = f"{len(bad)} of {requests} requests go wrong"
    if bad:
        return Check(name, Outcome.PASSED, f"{detail}, as they have to")
    return Check(name, Outcome.FAILED, f"only {detail}, so this proves nothing", vacuous=True)


def _covered(evidence: Evidence, truth: Truth, engines: list[Ended]) -> list[Check]:
    """What a pass of equality extends to."""
    block = max((engine.block for engine in engines), default=1)
    crossed = sum(
        (length + len(tokens)) // block - length // block
        for length, tokens in zip(truth.lengths, truth.tokens, strict=True)
    )
    preempted = sum(engine.preemptions or 0 for engine in engines)
    facts = (
        (
            "batches of different trees",
            len(truth.tokens) - 1,
            f"{len(truth.tokens)} requests at once",
        ),
        (
            "blocks that trees wrote",
            sum(e.cached for e in engines),
            "tokens came from the prefix cache",
        ),
        (
            "chunked prefill",
            sum(e.mixed for e in engines),
            "steps had trees beside pieces of prompts",
        ),
        ("block boundaries", crossed, f"boundaries of {block} tokens are crossed in a pass"),
        ("preemption", preempted, "requests were preempted"),
    )
    return [
        Check(
            name,
            Outcome.PASSED if number > 0 else Outcome.NOT_RUN,
            words if words[0].isdigit() else f"{number} {words}",
        )
        for name, number, words in facts
    ]
