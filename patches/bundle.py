"""A folder that patches an install without ddtree: for images and read-only machines.

apply.py      run it with the target's interpreter: `python apply.py SITE [--revert]`
plan.json     what it checks and does
plan.diff     the same for a person
old/  new/    the edited files before and after
beside/       what goes beside vLLM
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from ..analyzers.errors import ConflictError
from . import disk
from .disk import Attributes
from .distribution import TOPS
from .plan import Plan, sha256

_SCRIPT = Path(__file__).with_name("bundle_script.py")
_FILE = Attributes(0o644, os.geteuid(), os.getegid())
_FOLDER = Attributes(0o755, os.geteuid(), os.getegid())


def write_bundle(plan: Plan, folder: Path) -> None:
    """Write the bundle of a plan into a folder that is not there yet, whole or not at all.

    Raises:
        ConflictError: the folder is there already, or cannot be written.
    """
    folder = folder.absolute()
    if os.path.lexists(folder):
        raise _refusal(folder, "is there already")
    unfinished = folder.with_name(f".{folder.name}.ddtree-{plan.id}")
    try:
        disk.make_folders(folder.parent, 0o755)
        disk.remove(unfinished)
        made = {unfinished}
        disk.make_folder(unfinished, _FOLDER)
        for name, data in contents(plan).items():
            path = unfinished / name
            for parent in reversed(path.parents):
                if unfinished in parent.parents and parent not in made:
                    disk.make_folder(parent, _FOLDER)
                    made.add(parent)
            disk.write_new(path, data, _FILE)
        disk.rename(unfinished, folder)
    except OSError as error:
        disk.remove(unfinished)
        raise _refusal(folder, f"cannot be written: {error.strerror}") from error


def contents(plan: Plan) -> dict[str, bytes]:
    """Every file of the bundle by its path in it."""
    files = {
        "apply.py": _SCRIPT.read_bytes(),
        "plan.diff": plan.diff.encode("utf-8", "surrogateescape"),
    }
    files["plan.json"] = (json.dumps(_facts(plan), indent=1) + "\n").encode()
    for item in plan.edits:
        files[f"old/{item.file}"] = item.old
        files[f"new/{item.file}"] = item.new
    return files | {f"beside/{path}": data for path, data in plan.installed.items()}


def _facts(plan: Plan) -> dict[str, object]:
    return {
        "plan": plan.id,
        "version": plan.identity.version,
        "recipe": plan.recipe.name,
        "edits": [
            {"file": item.file, "old": item.old_sha256, "new": item.new_sha256}
            for item in plan.edits
        ],
        "beside": {path: sha256(data) for path, data in plan.installed.items()},
        "tops": list(TOPS),
    }


def _refusal(folder: Path, reason: str) -> ConflictError:
    return ConflictError(
        f"{folder} {reason}",
        expected="a new folder for the bundle",
        hint=f"ls -ld {shlex.quote(str(folder.parent))}",
    )
