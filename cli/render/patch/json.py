"""The outcome as one JSON object; `outcome` says which of the others it has."""

from __future__ import annotations

import json
from typing import Any

from .... import __version__
from ....analyzers.result import SCHEMA_VERSION
from ....patches.perform import Applied, Bundled, Outcome, Planned, Reverted
from ....patches.plan import Plan, sha256
from ....patches.status import Status


def render(outcome: Outcome) -> str:
    """The object, indented."""
    head = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "ddtree", "version": __version__},
    }
    return json.dumps(head | _body(outcome), indent=2) + "\n"


def _body(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Planned):
        return {"outcome": "planned", "plan": _plan(outcome.plan)}
    if isinstance(outcome, Applied):
        return {"outcome": "applied", "plan": _plan(outcome.plan), "notes": list(outcome.notes)}
    if isinstance(outcome, Bundled):
        return {"outcome": "bundled", "plan": _plan(outcome.plan), "folder": outcome.folder}
    if isinstance(outcome, Reverted):
        return {
            "outcome": "reverted",
            "sentence": outcome.sentence,
            "status": _status(outcome.status),
        }
    return {"outcome": "status", "status": _status(outcome)}


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "id": plan.id,
        "target": plan.target,
        "named": list(plan.named),
        "location": plan.location,
        "distribution": plan.distribution,
        "version": plan.identity.version,
        "way": plan.way.value,
        "recipe": {"name": plan.recipe.name, "range": plan.recipe.range, "why": plan.why},
        "edits": [
            {
                "file": item.file,
                "hooks": list(item.hooks),
                "old_sha256": item.old_sha256,
                "new_sha256": item.new_sha256,
                "diff": item.diff,
            }
            for item in plan.edits
        ],
        "hooks": [
            {"file": anchor.file, "function": anchor.name, "hook": anchor.hook}
            for anchor in plan.recipe.anchors
        ],
        "installed": {path: sha256(data) for path, data in plan.installed.items()},
        "local_edits": list(plan.local_edits),
        "notes": list(plan.notes),
    }


def _status(status: Status) -> dict[str, Any]:
    return {
        "state": status.state.value,
        "sentence": status.sentence,
        "target": status.target,
        "named": list(status.named),
        "location": status.location,
        "version": status.version,
        "plan_id": status.plan_id,
        "way": status.way.value,
        "recipe": status.recipe,
        "files": {file: state.value for file, state in status.files.items()},
        "runtime": list(status.runtime),
        "unreadable": list(status.unreadable),
        "leftovers": list(status.leftovers),
        "foreign": list(status.foreign),
        "outdated": status.outdated,
        "repair": list(status.repair),
        "notes": list(status.notes),
    }
