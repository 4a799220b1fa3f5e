"""Several reports as one JSON list: the contract that `cli/schema/hosts-1.json` describes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ....analyzers.errors import DdtreeError
from ....analyzers.remote.hosts import Outcome
from ....analyzers.result import to_json
from .. import error


def render(outcomes: Sequence[Outcome]) -> str:
    """A report or an error per target, in the order of the targets."""
    return json.dumps([_item(outcome) for outcome in outcomes], indent=2) + "\n"


def _item(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome.result, DdtreeError):
        return {**error.as_json(outcome.result), "target": outcome.target}
    return to_json(outcome.result) | {"target": outcome.target}
