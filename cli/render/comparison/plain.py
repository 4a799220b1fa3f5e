"""The comparison as lines for grep: only what differs, never wrapped, always in one order.

verdict: linear -> linear: <summary>
before: <distribution> <version>: <target>
after: <distribution> <version>: <target>
path: v1-runner: linear -> linear: default -> not default
stage: v1-runner: drafting: tree -> absent
methods: rejection: -strict +standard
install: version: 0.20.1 -> 0.24.0
install: modified: -vllm/a.py +vllm/b.py
lost: <path>:<line>:<column>: <rule>: <message> [...]
gained: <path>:<line>:<column>: <rule>: <message> [...]
moved: <rule>: <symbol>: <path>:<line> -> <line>
"""

from __future__ import annotations

from collections.abc import Iterator

from ....analyzers.compare import Comparison, PathChange
from ..report.plain import evidence_line
from ..text import cleaned
from . import phrases


def render(comparison: Comparison, *, quiet: bool) -> str:
    """All differences, or only the verdict line."""
    comparison = cleaned(comparison)
    lines = [f"verdict: {phrases.headline(comparison)}"]
    if not quiet:
        lines += _lines(comparison)
    return "".join(f"{line}\n" for line in lines)


def _lines(comparison: Comparison) -> Iterator[str]:
    for label, side in (("before", comparison.before), ("after", comparison.after)):
        yield f"{label}: {phrases.side(side)}: {side.target}"
    for path in comparison.paths:
        yield from _path(path)
    for fact in comparison.facts:
        yield f"install: {fact.name}: {phrases.fact(fact)}"
    for label, sets in (("install", comparison.lists), ("methods", comparison.methods)):
        for change in sets:
            yield f"{label}: {change.name}: {phrases.values(change)}"
    for item in comparison.lost:
        yield f"lost: {evidence_line(item)}"
    for item in comparison.gained:
        yield f"gained: {evidence_line(item)}"
    for moved in comparison.moved:
        yield f"moved: {moved.after.rule}: {moved.after.symbol}: {phrases.move(moved)}"


def _path(change: PathChange) -> Iterator[str]:
    if not change.changed:
        return
    verdicts = f"{phrases.verdict(change.before)} -> {phrases.verdict(change.after)}"
    default = phrases.default(change)
    yield f"path: {change.path}: {verdicts}" + (f": {default}" if default else "")
    for stage in change.stages:
        if stage.changed:
            before, after = phrases.verdict(stage.before), phrases.verdict(stage.after)
            yield f"stage: {change.path}: {stage.stage}: {before} -> {after}"
