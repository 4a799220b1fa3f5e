"""The rules as JSON; always whole, with help and examples."""

from __future__ import annotations

import json
from dataclasses import asdict

from ....analyzers.result import SCHEMA_VERSION
from ...rulebook import RuleHelp


def render(book: tuple[RuleHelp, ...]) -> str:
    """An object with the list of rules."""
    rules = [asdict(entry) for entry in book]
    return json.dumps({"schema_version": SCHEMA_VERSION, "rules": rules}, indent=2) + "\n"
