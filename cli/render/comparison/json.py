"""The comparison as JSON: `cli/schema/compare-1.json` describes it."""

from __future__ import annotations

import json
from dataclasses import asdict

from .... import __version__
from ....analyzers.compare import Comparison
from ....analyzers.result import SCHEMA_VERSION


def render(comparison: Comparison) -> str:
    """Indented ASCII; every field of the comparison under its own name."""
    head = {"schema_version": SCHEMA_VERSION, "tool": {"name": "ddtree", "version": __version__}}
    return json.dumps(head | asdict(comparison), indent=2) + "\n"
