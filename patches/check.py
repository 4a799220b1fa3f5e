"""Look at what was written: every byte again, its syntax, and the target's own interpreter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.install.names import dotted_name
from . import hints, probe
from .distribution import POINT, source_of
from .journal import Journal
from .marks import confine
from .place import Place
from .plan import Plan
from .undo import runtime_changes
from .way import Way

_TIMEOUT = 120
# vLLM itself, torch and all that they pull in, from a cold disk.
_IMPORT_TIMEOUT = 600


def check(plan: Plan, journal: Journal, place: Place, *, imports: bool = False) -> tuple[str, ...]:
    """Check an install that was just patched; sentences about what could not be checked.

    Args:
        imports: also import the edited modules; without it, they are compiled alone.

    Raises:
        ConflictError: something is not as planned, and should be taken back.
        OSError: a file cannot be read.
    """
    for item in plan.edits:
        data = place.real(item.file).read_bytes()
        if data != item.new:
            raise _wrong(f"{item.file} is not what was written", place)
        confine(item.file, item.old, data, item.hooks)
    changed = runtime_changes(journal.installed, place.site)
    if changed:
        raise _wrong(f"not what was written: {', '.join(changed)}", place)
    if place.python is None:
        return ("No interpreter belongs to this folder, so nothing was imported in it.",)
    wanted = {
        "files": [str(place.real(item.file)) for item in plan.edits],
        "hooks": [anchor.hook for anchor in plan.recipe.anchors],
        "modules": _modules(plan) if imports else [],
        "points": [POINT] if plan.way == Way.PLUGIN else [],
    }
    return _asked(place.python, place, wanted)


def refuse_broken(plan: Plan, place: Place) -> None:
    """Refuse an install whose modules cannot be imported even before they are edited.

    Raises:
        ConflictError: they cannot, or there is no interpreter to try it with.
    """
    if place.python is None:
        raise ConflictError(
            f"no interpreter belongs to {place.site}",
            expected="--python, an environment as the target, or no --check-imports",
            hint=hints.patch(plan.target, "--apply"),
        )
    try:
        wanted = {"files": [], "hooks": [], "modules": _modules(plan), "points": []}
        notes = _asked(place.python, place, wanted)
    except ConflictError as error:
        raise _broken(plan, error.found) from error
    if notes:
        raise _broken(plan, notes[0])


def _modules(plan: Plan) -> list[str]:
    return [dotted_name(file) for file in plan.recipe.by_file()]


def _asked(python: Path, place: Place, wanted: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    limit = _IMPORT_TIMEOUT if wanted["modules"] else _TIMEOUT
    try:
        done = subprocess.run(
            [
                str(python),
                "-I",
                "-B",
                "-c",
                source_of(probe.__name__),
                str(place.site),
                json.dumps(wanted),
            ],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=limit,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise _wrong(f"{python} did not import what it should in {limit} seconds", place) from None
    except OSError as error:
        return (f"{python} cannot be run ({error.strerror}), so nothing was imported.",)
    answer = _answer(done.stdout)
    if answer is None:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise _wrong(f"{python} could not be asked: exit code {done.returncode}: {last}", place)
    if answer["failed"]:
        raise _wrong(f"in {python}: {answer['failed']}", place)
    if answer["missing"]:
        return (f"{python} has no {answer['missing']}, so the runtime was not imported.",)
    return (answer["note"],) if answer.get("note") else ()


def _answer(text: str) -> dict[str, str] | None:
    # What was imported may print before the answer, and when the process ends.
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and {"failed", "missing"} <= set(found):
                return found
    return None


def _wrong(reason: str, place: Place) -> ConflictError:
    return ConflictError(
        f"the check failed: {reason}",
        expected="an install exactly as planned",
        hint=hints.patch(place.named, "--status"),
    )


def _broken(plan: Plan, reason: str) -> ConflictError:
    return ConflictError(
        f"before anything is written, {reason}",
        expected="edited modules that can be imported on this machine, or no --check-imports",
        hint=hints.patch(plan.target, "--apply"),
    )
