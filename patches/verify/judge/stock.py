"""L4: trees of width 1 give what the installed linear speculation gives."""

from __future__ import annotations

from ..evidence import Ended, Evidence, Truth
from ..report import Check, Outcome
from .tokens import Divergence, Rule, diverged

# Outside of float32 a drafter sees slightly different hidden states, and may draft other tokens.
SHARE = 0.02


def why_not(evidence: Evidence, method: str | None) -> str:
    """Why the level cannot be run; empty if it can."""
    if method == "ngram":
        return "an n-gram drafter's trees merge several matches, and have no width to set to 1"
    if "chain" in evidence.failures:
        return f"the stock chain does not run: {evidence.failures['chain']}"
    return ""


def checks(evidence: Evidence, truth: Truth, rule: Rule) -> tuple[Check, ...]:
    """Equal tokens, equal acceptance."""
    one, other = evidence.engine("width1"), evidence.engine("chain")
    if one is None or other is None:
        reason = evidence.failures.get("width 1") or evidence.failures.get(
            "engines", "it did not end"
        )
        return (Check("tokens", Outcome.FAILED, reason),)
    return (_tokens(evidence, truth, rule), _acceptance(one, other, rule), _drafts(one, other))


def _tokens(evidence: Evidence, truth: Truth, rule: Rule) -> Check:
    passes = {
        name: {pass_.name: pass_.tokens for pass_ in evidence.passes if pass_.engine == name}
        for name in ("chain", "width 1")
    }
    equal = total = 0
    for name, lines in passes["chain"].items():
        # The last request of the tree's pass may be one that the chain's has not.
        pairs = list(zip(lines, passes["width 1"].get(name, ()), strict=False))
        total += len(lines)
        equal += sum(mine == theirs for theirs, mine in pairs)
    if equal == total and total:
        return Check("tokens", Outcome.PASSED, f"{total} of {total} continuations are equal")
    found: list[Divergence] = diverged(truth, (p for p in evidence.passes if p.engine == "width 1"))
    wide = [one for one in found if not rule.is_tie(one)]
    said = f"{equal} of {total} continuations are equal"
    if not wide and not rule.exact:
        return Check("tokens", Outcome.PASSED, f"{said}; the others part at near ties")
    return Check("tokens", Outcome.FAILED, "; ".join([said, *map(str, wide[:1])]))


def _acceptance(one: Ended, other: Ended, rule: Rule) -> Check:
    mine = [(part.verifications, part.accepted) for part in one.stretches]
    theirs = [(part.verifications, part.accepted) for part in other.stretches]
    told = [f"{sum(a for _, a in x)} of {sum(v for v, _ in x)}" for x in (mine, theirs)]
    said = f"accepted tokens of verifications: {told[0]}, stock chain {told[1]}"
    if rule.exact:
        same = mine == theirs and bool(mine)
    else:
        rates = [sum(a for _, a in x) / max(1, sum(v for v, _ in x)) for x in (mine, theirs)]
        same = bool(mine) and abs(rates[0] - rates[1]) <= SHARE * (1 + rates[1])
    return Check("acceptance", Outcome.PASSED if same else Outcome.FAILED, said)


def _drafts(one: Ended, other: Ended) -> Check:
    accepted = sum(part.accepted for part in other.stretches)
    if one.branches:
        detail = f"{one.branches} accepted nodes are off the first branch of a tree of width 1"
        return Check("drafts", Outcome.FAILED, detail)
    if not accepted:
        detail = "the stock chain accepted nothing, so nothing was compared"
        return Check("drafts", Outcome.FAILED, detail, vacuous=True)
    return Check("drafts", Outcome.PASSED, f"the stock chain accepted {accepted} drafted tokens")
