"""The report as JSON: the contract that `cli/schema/inspect-1.json` describes."""

from __future__ import annotations

import json

from ....analyzers.result import Report, to_json


def render(report: Report) -> str:
    """Indented ASCII, so that undecodable file names survive as escapes."""
    return json.dumps(to_json(report), indent=2) + "\n"
