"""Several outcomes as one SARIF log with a run each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ....analyzers.errors import DdtreeError
from ....analyzers.remote.hosts import Outcome
from ...rulebook import RuleHelp
from ..report.sarif import run
from ..sarif import failed_run, log


def render(outcomes: Sequence[Outcome], book: tuple[RuleHelp, ...], codes: Sequence[int]) -> str:
    """The log; a run says its target in its automation details."""
    runs = [_run(outcome, book, code) for outcome, code in zip(outcomes, codes, strict=True)]
    return json.dumps(log(*runs), indent=2) + "\n"


def _run(outcome: Outcome, book: tuple[RuleHelp, ...], code: int) -> dict[str, Any]:
    made = (
        failed_run(outcome.result)
        if isinstance(outcome.result, DdtreeError)
        else run(outcome.result, book, code)
    )
    return made | {"automationDetails": {"id": f"ddtree/{outcome.target}/"}}
