"""The comparison as Markdown, for an issue or a wiki."""

from __future__ import annotations

from collections.abc import Iterator

from ....analyzers.compare import Comparison, PathChange, SetChange, StageChange
from ....analyzers.result import Evidence
from .. import md
from ..text import cleaned
from . import phrases


def render(comparison: Comparison, *, quiet: bool) -> str:
    """Verdict, table of the stages, what differs; or the verdict alone."""
    comparison = cleaned(comparison)
    parts = [f"**{comparison.after.verdict}**: {md.prose(comparison.summary)}"]
    if not quiet:
        parts += [_table(comparison), *_lists(comparison)]
    return "\n\n".join(parts) + "\n"


def _table(comparison: Comparison) -> str:
    sides = (comparison.before, comparison.after)
    header = ["path", "stage", *(md.code(phrases.side(side)) for side in sides)]
    rows = []
    for path in comparison.paths:
        rows += [_row(path, stage) for stage in path.stages]
        total = [f"**{phrases.verdict(value)}**" for value in (path.before, path.after)]
        rows.append([path.path.value, "**total**", *total])
    return md.table(header, rows)


def _row(path: PathChange, stage: StageChange) -> list[str]:
    before, after = phrases.verdict(stage.before), phrases.verdict(stage.after)
    return [path.path.value, stage.stage.value, before, f"**{after}**" if stage.changed else after]


def _lists(comparison: Comparison) -> Iterator[str]:
    defaults = [(change.path.value, phrases.default(change)) for change in comparison.paths]
    yield from _list("Default", [f"{name}: {text}" for name, text in defaults if text])
    yield from _list("Methods", [_set(change) for change in comparison.methods])
    facts = [f"{fact.name}: {md.code(phrases.fact(fact))}" for fact in comparison.facts]
    yield from _list("Install", facts + [_set(change) for change in comparison.lists])
    yield from _list("Evidence lost", [_item(item) for item in comparison.lost])
    yield from _list("Evidence gained", [_item(item) for item in comparison.gained])
    moves = [f"{md.code(m.after.symbol)}: {md.code(phrases.move(m))}" for m in comparison.moved]
    yield from _list("Evidence moved", moves)


def _list(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"### {title}"
        yield "\n".join(f"- {line}" for line in lines)


def _set(change: SetChange) -> str:
    return f"{change.name}: {md.code(phrases.values(change))}"


def _item(item: Evidence) -> str:
    place = md.code(f"{item.file}:{item.line}")
    return f"{item.path}, {item.stage}: {place} in {md.code(item.symbol)}: {md.prose(item.message)}"
