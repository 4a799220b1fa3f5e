"""Look at what was written: every byte again, its syntax, and the target's own interpreter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..analyzers.errors import ConflictError
from . import edit
from .journal import Journal
from .place import Place
from .plan import Plan
from .undo import runtime_changes

_PROBE = Path(__file__).with_name("probe.py")
_TIMEOUT = 120


def check(plan: Plan, journal: Journal, place: Place) -> tuple[str, ...]:
    """Check an install that was just patched; sentences about what could not be checked.

    Raises:
        ConflictError: something is not as planned, and should be taken back.
        OSError: a file cannot be read.
    """
    for item in plan.edits:
        data = place.real(item.file).read_bytes()
        if data != item.new:
            raise _wrong(f"{item.file} is not what was written")
        edit.confine(item.file, item.old, data, len(item.hooks))
    changed = runtime_changes(journal, place)
    if changed:
        raise _wrong(f"not what was written: {', '.join(changed)}")
    if place.python is None:
        return ("No interpreter belongs to this folder, so nothing was imported in it.",)
    files = [str(place.real(item.file)) for item in plan.edits]
    hooks = [hook for item in plan.edits for hook in item.hooks]
    return _asked(place.python, place.site, files, hooks)


def _asked(python: Path, site: Path, files: Sequence[str], hooks: Sequence[str]) -> tuple[str, ...]:
    wanted = json.dumps({"files": files, "hooks": hooks})
    try:
        done = subprocess.run(
            [str(python), "-I", "-B", str(_PROBE), str(site), wanted],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise _wrong(f"{python} did not import the runtime within {_TIMEOUT} seconds") from None
    except OSError as error:
        return (f"{python} cannot be run ({error.strerror}), so nothing was imported.",)
    answer = _answer(done.stdout)
    if answer is None:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise _wrong(f"{python} could not be asked: exit code {done.returncode}: {last}")
    if answer["failed"]:
        raise _wrong(f"in {python}: {answer['failed']}")
    if answer["missing"]:
        return (f"{python} has no {answer['missing']}, so the runtime was not imported.",)
    return ()


def _answer(text: str) -> dict[str, str] | None:
    try:
        found = json.loads(text.rpartition("\n")[2])
    except ValueError:
        return None
    known = isinstance(found, dict) and {"failed", "missing"} <= set(found)
    return found if known else None


def _wrong(reason: str) -> ConflictError:
    return ConflictError(
        f"the check after writing failed: {reason}",
        expected="an install exactly as planned",
        hint="ddtree patch --status",
    )
