"""The report as Markdown, for an issue or a run's summary."""

from __future__ import annotations

from collections.abc import Iterator

from ....patches.verify.report import Report
from .. import md
from ..text import cleaned
from . import phrases

HEADER = ("engine", "acceptance length", "first branch", "ms per step", "tokens/s")


def render(report: Report, *, quiet: bool) -> str:
    """All of it, or the first two lines."""
    report = cleaned(report)
    parts = [
        f"**{report.verdict}**: {md.prose(phrases.headline(report))}",
        f"**Pays: {report.pays}**: {md.prose(report.sentence)}",
    ]
    if not quiet:
        parts += _parts(report)
    return "\n\n".join(parts) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield "\n".join(f"- {label}: {md.prose(value)}" for label, value in phrases.facts(report))
    outcome, sentence = phrases.imports(report)
    rows = [["imports", "the edited modules import", str(outcome), md.prose(sentence)]]
    for level in report.levels:
        rows.append([level.level, level.claim, str(level.outcome), md.prose(phrases.level(level))])
    yield md.table(("level", "claim", "outcome", ""), rows)
    checks = [
        f"- {level.level}, {md.prose(check.name)}: {check.outcome}: {md.prose(check.detail)}"
        for level in report.levels
        for check in level.checks
    ]
    if checks:
        yield "\n".join(checks)
    timed = phrases.timed(report)
    if timed:
        yield md.table(
            HEADER, [[md.prose(engine.name), *phrases.figures(engine)] for engine in timed]
        )
    lines = [f"- {md.prose(f'{cost.name}: {phrases.cost(cost)}')}" for cost in report.costs]
    lines += [
        f"- {md.prose(text)}"
        for text in (phrases.measured(report), report.rule, *report.notes)
        if text
    ]
    if lines:
        yield "\n".join(lines)
    if report.log:
        yield md.block("\n".join(report.log), "text")
