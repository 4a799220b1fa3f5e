"""The report as lines for grep, awk and editors: never wrapped, never cut, always in one order.

Every line starts with its kind and a colon, except evidence, which starts with its place:

    verdict: linear: <summary>
target: <what was named on the command line>
    path: v1-runner: linear: default: <summary>
    stage: v1-runner: verification: linear: E1 E2: <reason>
    install: <fact>: <value>
    methods: speculative: ngram eagle
    coverage: <sentence>
    unreadable: <file>: <reason>
    note: <text>
    <path>:<line>:<column>: <rule>: <message> [v1-runner verification linear E1]
"""

from __future__ import annotations

from collections.abc import Iterator

from ....analyzers.result import Evidence, PathResult, Report
from .. import words
from ..text import cleaned


def render(report: Report, *, quiet: bool) -> str:
    """All lines, or only the verdict."""
    report = cleaned(report)
    lines = [f"verdict: {report.verdict}: {report.summary}"]
    if not quiet:
        lines += _head(report)
        lines += [evidence_line(item) for item in words.in_order(report.evidence)]
    return "".join(f"{line}\n" for line in lines)


def evidence_line(item: Evidence) -> str:
    """One finding, with the place first as compilers print it."""
    calls = " -> ".join(call.symbol for call in words.callers(item))
    reached = f" (reached by {calls})" if calls else ""
    tag = f"{item.path} {item.stage} {item.supports} {item.id}"
    place = f"{item.file}:{item.line}:{item.column}"
    return f"{place}: {item.rule}: {item.message}{reached} [{tag}]"


def _head(report: Report) -> Iterator[str]:
    yield f"target: {report.target}"
    for result in report.paths:
        yield from _path(result)
    # Plug-ins are written out whole here: a script that counts must not see "and 7 more".
    for label, value in words.facts(report.install, names=1_000_000):
        yield f"install: {label}: {value}"
    for kind in ("speculative", "rejection"):
        yield f"methods: {kind}: {' '.join(getattr(report.methods, kind))}".rstrip()
    yield f"coverage: {words.coverage_sentence(report.coverage)}"
    for item in report.coverage.unreadable:
        yield f"unreadable: {item.file}: {item.reason}"
    for note in report.notes:
        yield f"note: {note}"


def _path(result: PathResult) -> Iterator[str]:
    default = words.default_word(result.default) or "not default"
    yield f"path: {result.path}: {result.verdict}: {default}: {result.summary}"
    for stage, found in result.stages.items():
        proof = " ".join(found.evidence) or "-"
        yield f"stage: {result.path}: {stage}: {found.verdict}: {proof}: {found.reason}".rstrip()
