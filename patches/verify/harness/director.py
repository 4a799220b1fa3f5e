"""Runs the parts of a verification one after another, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from . import events, plan, runners

START = (
    "import sys; sys.path.insert(0, {0!r}); "
    "from ddtree_harness.child import main; main({0!r}, {1!r})"
)


def main(folder: str) -> None:
    """Run the job that lies in `folder`; events go to stdout."""
    descriptor = events.claim_stdout()
    known = partial(runners.known, json.loads((Path(folder) / "job.json").read_text()))
    for name, variables in plan.parts(known(Path(folder)), partial(known, Path(folder))):
        _run(folder, descriptor, name, variables)
        if (Path(folder) / plan.REFUSED).exists():
            break
    events.emit("end")


def _run(folder: str, descriptor: int, name: str, variables: dict[str, Any]) -> None:
    ended = subprocess.run(
        [sys.executable, "-I", "-B", "-c", START.format(folder, name)],
        env={**os.environ, **variables},
        pass_fds=[descriptor],
        check=False,
    )
    if ended.returncode != 0:
        reason = f"the process of {name!r} ended with {ended.returncode}"
        events.emit("failed", part=name, reason=reason)
