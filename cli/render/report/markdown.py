"""The report as Markdown, for an issue or a wiki."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ....analyzers.result import Evidence, Report, Stage
from .. import md, words
from ..text import cleaned

_LANGUAGES = {".py": "python", ".cpp": "cpp", ".cu": "cpp", ".h": "cpp"}


def render(report: Report, *, quiet: bool) -> str:
    """Verdict, facts, table, evidence; or the verdict alone."""
    report = cleaned(report)
    parts = [f"**{report.verdict}**: {md.prose(report.summary)}"]
    if not quiet:
        parts += [_facts(report), _table(report), *_evidence(report), *_end(report)]
    return "\n\n".join(parts) + "\n"


def _facts(report: Report) -> str:
    rows = [("target", report.target), *words.facts(report.install, names=10)]
    return md.table(["fact", "value"], [[label, md.code(value)] for label, value in rows])


def _table(report: Report) -> str:
    header = ["stage"]
    for result in report.paths:
        default = words.default_word(result.default)
        header.append(f"{result.path} ({default})" if default else result.path)
    rows = [[stage.value, *_cells(report, stage)] for stage in Stage]
    total = ["**total**", *(f"**{result.verdict}**" for result in report.paths)]
    return md.table(header, [*rows, total])


def _cells(report: Report, stage: Stage) -> Iterator[str]:
    for result in report.paths:
        found = result.stages[stage]
        yield f"{found.verdict} {' '.join(md.prose(proof) for proof in found.evidence)}".strip()


def _evidence(report: Report) -> Iterator[str]:
    for section in words.sections(report):
        yield f"### {section.path}"
        if section.result:
            yield md.prose(section.result.summary)
        for stage in section.stages:
            if stage.result:
                reason = f": {md.prose(stage.result.reason)}" if stage.result.reason else ""
                yield f"**{stage.stage}: {stage.result.verdict}**{reason}"
            for item in stage.evidence:
                yield from _item(item, words.says_more(item, stage))


def _item(item: Evidence, with_message: bool) -> Iterator[str]:
    place = md.code(f"{item.file}:{item.line}")
    head = f"{md.prose(item.id)} {place} in {md.code(item.symbol)}"
    message = f": {md.prose(item.message)}" if with_message else ""
    yield f"{head} ({item.supports}, rule {md.code(item.rule)}){message}"
    yield md.block(item.quote, _LANGUAGES.get(PurePosixPath(item.file).suffix, "text"))
    if words.callers(item):
        yield "Reached by " + " → ".join(
            f"{md.code(call.symbol)} ({md.code(f'{call.file}:{call.line}')})" for call in item.calls
        )


def _end(report: Report) -> Iterator[str]:
    yield "### Methods and coverage"
    methods = report.methods
    lines = [
        f"speculative methods: {_codes(methods.speculative)}",
        f"rejection methods: {_codes(methods.rejection)}",
        words.coverage_sentence(report.coverage),
    ]
    lines += [
        f"unreadable: {md.code(item.file)}: {md.prose(item.reason)}"
        for item in report.coverage.unreadable
    ]
    lines += [md.prose(note) for note in report.notes]
    yield "\n".join(f"- {line}" for line in lines)


def _codes(values: tuple[str, ...]) -> str:
    return ", ".join(md.code(value) for value in values) or "none found"
