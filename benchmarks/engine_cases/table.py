"""The figures of a workload as a markdown table, and in words what follows from them."""

from __future__ import annotations

import statistics

from ..timing import quartiles
from .forms import CONTROL, PLAIN, STOCK_CHAIN, TREE_CHAIN, UNCONFIGURED, Workload
from .passes import Runner, ratios, sign_test

HEAD = (
    "| form | step | quartiles | step, to chain | acceptance | tokens/s | to chain | greedy |",
    "|---|---|---|---|---|---|---|---|",
)
# The most that a chain-shaped tree may cost beside the stock chain, per step.
TARGET = 0.05


def table(workload: Workload, made: list[Runner]) -> str:
    """A line per form, compared with the first."""
    drafter = "calibrated proposer" if workload.drafter is None else "DFlash drafter"
    title = (
        f"**{workload.name}**, {drafter}, {workload.dtype}, {workload.requests} requests of "
        f"{workload.tokens} tokens, n = {len(made[0].passes)}"
    )
    return "\n".join([title, "", *HEAD, *(line(runner, made) for runner in made)])


def line(runner: Runner, made: list[Runner]) -> str:
    """One form's row."""
    low, middle, high = (1000 * value for value in quartiles(steps(runner)))
    base = by_name(made)[STOCK_CHAIN]
    rate = statistics.median(each.rate() for each in runner.passes)
    cells = (
        runner.form.name,
        f"{middle:.2f} ms",
        f"{low:.2f} to {high:.2f}",
        f"{statistics.median(ratios(steps(runner), steps(base))):.3f}x",
        f"{statistics.median(each.acceptance() for each in runner.passes):.3f}",
        f"{rate:.1f}",
        f"{statistics.median(ratios(rates(runner), rates(base))):.2f}x",
        f"{greedy(runner, made)} of {len(runner.prompts)}",
    )
    return "| " + " | ".join(cells) + " |"


def steps(runner: Runner) -> tuple[float, ...]:
    """Seconds of a step, round by round."""
    return tuple(each.step() for each in runner.passes)


def rates(runner: Runner) -> tuple[float, ...]:
    """Tokens per second, round by round."""
    return tuple(each.rate() for each in runner.passes)


def greedy(runner: Runner, made: list[Runner]) -> int:
    """Requests whose tokens are those of no speculation, in the last round."""
    truth = by_name(made)[PLAIN].passes[-1].tokens
    pairs = zip(runner.passes[-1].tokens, truth, strict=True)
    return sum(mine == theirs for mine, theirs in pairs)


def by_name(made: list[Runner]) -> dict[str, Runner]:
    """The forms by name."""
    return {runner.form.name: runner for runner in made}


def verdicts(made: list[Runner]) -> str:
    """What the integration costs, and whether the largest gain of a tree is one."""
    known = by_name(made)
    base = known[STOCK_CHAIN]
    lines = []
    for name in (CONTROL, UNCONFIGURED, TREE_CHAIN):
        if name in known:
            lines.append(f"{name}: {overhead(known[name], base)}")
    trees = [runner for runner in made if runner.form.nodes]
    if trees:
        best = max(trees, key=lambda runner: statistics.median(rates(runner)))
        gain = ratios(rates(best), rates(base))
        lines.append(
            f"fastest tree ({best.form.name}): {statistics.median(gain):.2f}x the chain's "
            f"tokens/s, faster in {sum(value > 1 for value in gain)} of {len(gain)} rounds, "
            f"sign test p = {sign_test(gain):.3g}"
        )
    return "\n".join(f"- {text}" for text in lines)


def overhead(runner: Runner, base: Runner) -> str:
    """How much more a step costs than the stock chain's, and how sure that is."""
    pairs = zip(steps(runner), steps(base), strict=True)
    more = statistics.median(1000 * (own - other) for own, other in pairs)
    worked = ratios(*([each.work() for each in one.passes] for one in (runner, base)))
    wall = ratios(steps(runner), steps(base))
    kept = "kept" if statistics.median(wall) <= 1 + TARGET else "missed"
    return (
        f"per step {share(wall)}, {more:+.2f} ms; limit 5 %: {kept}; processor time {share(worked)}"
    )


def share(paired: tuple[float, ...]) -> str:
    """Ratios as what they are more than 1, with the sign test."""
    low, middle, high = (100 * (value - 1) for value in quartiles(paired))
    above = sum(value > 1 for value in paired)
    return (
        f"{middle:+.1f} % (quartiles {low:+.1f} to {high:+.1f}; more in {above} of {len(paired)} "
        f"rounds, sign test p = {sign_test(paired):.3g})"
    )
