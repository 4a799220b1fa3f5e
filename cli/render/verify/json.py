"""The report as JSON: `cli/schema/verify-1.json` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict

from ....analyzers.result import SCHEMA_VERSION
from ....patches.verify.report import Report


def render(report: Report) -> str:
    """Indented ASCII; every field of the report under its own name."""
    body = asdict(report)
    head = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "ddtree", "version": body.pop("tool_version")},
    }
    return json.dumps(head | body, indent=2) + "\n"
