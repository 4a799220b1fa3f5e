"""One process of a verification; started by the director with the name of its part."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import engines, events, importing, inputs, l1, l2, plan, runners


def main(folder: str, part: str) -> None:
    """Run one part of the job in `folder`; what it raises becomes an event."""
    events.stay_alive()
    job = json.loads((Path(folder) / "job.json").read_text())
    if part not in ("L1", "L2") and os.environ.get("TRITON_INTERPRET") == "1":
        runners.bring_triton(Path(folder))
    try:
        _work(part)(job, Path(folder), part)
    # Whatever a target's code raises is the finding.
    except BaseException as failure:  # noqa: BLE001
        if not isinstance(failure, events.Unable):
            traceback.print_exc()
        events.emit("failed", part=part, reason=events.reason(failure))
    sys.stdout.flush()
    sys.stderr.flush()


def _work(part: str) -> Callable[[dict[str, Any], Path, str], object]:
    parts: dict[str, Callable[[dict[str, Any], Path, str], object]] = {
        plan.IMPORTS: _imports,
        plan.INPUTS: inputs.run,
        "L1": l1.run,
        "L2": l2.run,
    }
    return parts.get(part, engines.run)


def _imports(job: dict[str, Any], folder: Path, part: str) -> None:
    """Import the edited modules; then ask which runner the engines that come will work with."""
    whole = importing.run(job, folder, part)
    if whole and set(job["levels"]) & set(plan.ENGINE_LEVELS):
        runners.settled(job, folder)
