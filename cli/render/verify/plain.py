"""The report as lines for grep: never wrapped, always in one order.

verify: passed: <sentence>
pays: no: <sentence>
target: vLLM <version>: <folder>
imports: passed: <sentence>
level: L5: passed: <claim>: <sentence>
check: L5: passed: <name>: <detail>
engine: tree 32: acceptance length 1.58 (first branch 1.27): 20.10 ms per step: 300 tokens/s
cost: tree 32: <sentence>
figures: <how engine and cost lines hang together>
rule: <how outputs were compared>
note: <text>
log: <what the target printed last, if something failed>
"""

from __future__ import annotations

from collections.abc import Iterator

from ....patches.verify.report import Report
from ..text import cleaned
from . import phrases


def render(report: Report, *, quiet: bool) -> str:
    """All lines, or the first two."""
    report = cleaned(report)
    lines = [
        f"verify: {report.verdict}: {phrases.headline(report)}",
        f"pays: {report.pays}: {report.sentence}",
    ]
    if not quiet:
        lines += _lines(report)
    return "".join(f"{line}\n" for line in lines)


def _lines(report: Report) -> Iterator[str]:
    yield from (f"{label}: {value}" for label, value in phrases.facts(report))
    outcome, sentence = phrases.imports(report)
    yield f"imports: {outcome}: {sentence}"
    for level in report.levels:
        yield f"level: {level.level}: {level.outcome}: {level.claim}: {phrases.level(level)}"
        for check in level.checks:
            yield f"check: {level.level}: {check.outcome}: {check.name}: {check.detail}"
    for engine in phrases.timed(report):
        length, first, step, rate = phrases.figures(engine)
        yield (
            f"engine: {engine.name}: acceptance length {length} (first branch {first}): "
            f"{step} ms per step: {rate} tokens/s"
        )
    yield from (f"cost: {cost.name}: {phrases.cost(cost)}" for cost in report.costs)
    if phrases.measured(report):
        yield f"figures: {phrases.measured(report)}"
    if report.rule:
        yield f"rule: {report.rule}"
    yield from (f"note: {note}" for note in report.notes)
    yield from (f"log: {line}" for line in report.log)
