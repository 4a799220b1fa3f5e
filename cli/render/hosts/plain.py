"""Several outcomes as lines for grep and awk: the place first, as elsewhere.

Lines are `TARGET: VERDICT: SUMMARY`, or `TARGET: failed: WHAT WAS FOUND`; unless the run is quiet,
`TARGET: package: ...`, `TARGET: paths: ...`, `TARGET: differs from RECORD: ...`, or `TARGET: run:
...` follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....analyzers.errors import DdtreeError
from ....analyzers.remote.hosts import Outcome
from ..text import clean
from .rows import HEADER, rows


def render(outcomes: Sequence[Outcome], *, quiet: bool) -> str:
    """All lines, or one per target."""
    lines: list[str] = []
    for outcome, row in zip(outcomes, rows(outcomes), strict=True):
        first, *more = _lines(outcome, row)
        lines += [first] if quiet else [first, *more]
    return "".join(f"{line}\n" for line in lines)


def _lines(outcome: Outcome, row: tuple[str, ...]) -> Iterator[str]:
    target = row[0]
    if isinstance(outcome.result, DdtreeError):
        yield f"{target}: failed: {clean(outcome.result.found)}"
        yield f"{target}: run: {clean(outcome.result.hint)}"
        return
    yield f"{target}: {row[1]}: {clean(outcome.result.summary)}"
    for label, value in list(zip(HEADER, row, strict=True))[2:]:
        yield f"{target}: {label}: {value}"
