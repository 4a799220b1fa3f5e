"""The parts of SARIF 2.1.0 that a report and a failure have in common."""

from __future__ import annotations

from typing import Any

from ... import __version__
from ...analyzers.errors import DdtreeError

SCHEMA_URI = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def log(*runs: dict[str, Any]) -> dict[str, Any]:
    """The file that carries the runs."""
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": list(runs)}


def tool(rules: list[dict[str, Any]]) -> dict[str, Any]:
    """This program, as the `tool` of a run."""
    return {"driver": {"name": "ddtree", "semanticVersion": __version__, "rules": rules}}


def message(text: str) -> dict[str, str]:
    """A message object of plain text."""
    return {"text": text}


def failed_run(failure: DdtreeError) -> dict[str, Any]:
    """A run that ended with an error: no results, and the reason in the invocation."""
    notification = {
        "level": "error",
        "message": message(f"{failure.found}; expected: {failure.expected}; run: {failure.hint}"),
    }
    invocation = {
        "executionSuccessful": False,
        "exitCode": failure.exit_code,
        "toolExecutionNotifications": [notification],
    }
    return {"tool": tool([]), "invocations": [invocation], "results": []}
