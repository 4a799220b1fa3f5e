"""Wording and grouping that the renderers of a report share; knows no output format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...analyzers.result import (
    Call,
    Coverage,
    EnginePath,
    Evidence,
    Install,
    PathResult,
    Report,
    Stage,
    StageResult,
)

# How many files that differ are named.
_FEW = 3


@dataclass(frozen=True, slots=True)
class StageSection:
    """One stage of one engine path with everything found about it."""

    stage: Stage
    result: StageResult | None
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class PathSection:
    """One engine path with its stages; `result` is None for evidence of a path not reported."""

    path: EnginePath
    result: PathResult | None
    stages: tuple[StageSection, ...]


def in_order(evidence: Iterable[Evidence]) -> list[Evidence]:
    """By place, then by what it says: the same order whatever the order of the rules."""
    return sorted(evidence, key=lambda e: (e.file, e.line, e.column, e.rule, e.path, e.stage, e.id))


def sections(report: Report) -> Iterator[PathSection]:
    """The report by engine path and stage; no evidence is left out."""
    results = {result.path: result for result in report.paths}
    for path in EnginePath:
        evidence = [e for e in in_order(report.evidence) if e.path == path]
        if path in results or evidence:
            result = results.get(path)
            stages = tuple(_stage(stage, result, evidence) for stage in Stage)
            yield PathSection(path, result, stages)


def _stage(stage: Stage, result: PathResult | None, evidence: list[Evidence]) -> StageSection:
    verdict = result.stages.get(stage) if result else None
    cited = verdict.evidence if verdict else ()
    found = [e for e in evidence if e.stage == stage]
    # What proves the verdict comes first, in the order in which the verdict cites it.
    found.sort(key=lambda e: cited.index(e.id) if e.id in cited else len(cited))
    return StageSection(stage, verdict, tuple(found))


def callers(item: Evidence) -> tuple[Call, ...]:
    """The calls that lead to the evidence, without the function that holds it.

    The place of a call is where it is made, so only the symbol says what is reached.
    """
    calls = item.calls
    return calls[:-1] if calls and calls[-1].symbol == item.symbol else calls


def says_more(item: Evidence, section: StageSection) -> bool:
    """Whether the message of the evidence is not already the reason of the stage's verdict."""
    result = section.result
    return result is None or (item.supports, item.message) != (result.verdict, result.reason)


def default_word(default: bool | None) -> str:
    """How an engine path is chosen, in a word or two; empty where it is not the default."""
    return {True: "default", False: "", None: "default per model"}[default]


def name_and_version(install: Install) -> str:
    """The distribution and its version, or that there is none."""
    if install.distribution is None:
        return f"no distribution metadata, version {install.version or 'unknown'}"
    return f"{install.distribution} {install.version or '(version unknown)'}"


def facts(install: Install, names: int) -> list[tuple[str, str]]:
    """Label and value of every install fact; plug-ins are cut to `names` of them and a count."""
    rows = [
        ("package", name_and_version(install) + (" (editable)" if install.editable else "")),
        ("location", install.location),
        ("python", install.python or "not stated"),
        ("torch", install.torch or "not stated"),
        ("triton", install.triton or "not stated"),
        ("differs from RECORD", _differences(install)),
    ]
    plugins = [f"{p.group}: {p.name} = {p.value}" for p in install.plugins]
    others = [f"{o.distribution} {o.version or '?'} at {o.location}" for o in install.others]
    rows += _each("plug-in", plugins or ["none"], names)
    return rows + _each("other vLLM here", others, names)


def _each(label: str, values: Sequence[str], limit: int) -> list[tuple[str, str]]:
    rows = [(label, value) for value in values[:limit]]
    rest = len(values) - limit
    return [*rows, (label, f"and {rest} more")] if rest > 0 else rows


def _differences(install: Install) -> str:
    """Counts with the first files: hundreds of names would bury all else, and JSON has them."""
    kinds = {"modified": install.modified, "missing": install.missing, "extra": install.extra}
    found = [f"{len(v)} {kind}: {some(v, _FEW)}" for kind, v in kinds.items() if v]
    return "; ".join(found) or "nothing"


def some(values: Sequence[str], limit: int) -> str:
    """The first `limit` values, and how many more there are."""
    head = ", ".join(values[:limit])
    rest = len(values) - limit
    return f"{head} and {rest} more" if rest > 0 else head or "none"


def megabytes(size: int) -> str:
    """A size in MB with one decimal."""
    return f"{size / 1e6:.1f} MB"


def counted(number: int, noun: str) -> str:
    """A number and its noun, which takes an s unless there is one of it."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def coverage_sentence(coverage: Coverage) -> str:
    """What was looked at, in one sentence without a full stop."""
    read = f"{counted(coverage.files, 'file')} ({megabytes(coverage.bytes)}) read"
    run = f"{counted(len(coverage.rules), 'rule')} run"
    return f"{read}, {coverage.parsed:,} parsed, {run}, {len(coverage.unreadable)} unreadable"
