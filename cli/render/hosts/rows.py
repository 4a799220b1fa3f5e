"""What the table of several targets says of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....analyzers.errors import DdtreeError
from ....analyzers.remote.hosts import Outcome
from ....analyzers.result import Report
from .. import words
from ..text import clean, cleaned

HEADER = ("target", "verdict", "package", "paths", "differs from RECORD")


@dataclass(frozen=True, slots=True)
class Failure:
    """A target without a report, fit to be printed."""

    target: str
    found: str
    hint: str


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """A row under `HEADER` per outcome; the cells of a failure but two are empty."""
    for outcome in outcomes:
        if isinstance(outcome.result, DdtreeError):
            yield (clean(outcome.target), "failed", "", "", "")
        else:
            yield _row(clean(outcome.target), cleaned(outcome.result))


def failures(outcomes: Sequence[Outcome]) -> Iterator[Failure]:
    """The failures, in order."""
    for outcome in outcomes:
        if isinstance(outcome.result, DdtreeError):
            error = outcome.result
            yield Failure(clean(outcome.target), clean(error.found), clean(error.hint))


def _row(target: str, report: Report) -> tuple[str, ...]:
    install = report.install
    counts = {
        "modified": len(install.modified),
        "missing": len(install.missing),
        "extra": len(install.extra),
    }
    differing = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    paths = ", ".join(f"{path.path} {path.verdict}" for path in report.paths)
    return (
        target,
        report.verdict.value,
        words.name_and_version(install),
        paths,
        differing or "nothing",
    )
