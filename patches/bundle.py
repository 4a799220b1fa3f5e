"""A folder that patches an install without ddtree: for images and read-only machines.

apply.py      run it with the target's interpreter: `python apply.py [SITE] [--revert]`
plan.json     what it checks and does
plan.diff     the same for a person
old/  new/    the edited files before and after
beside/       what goes beside vLLM
modules/      the modules that do it, which are those that do it here
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.remote.bundle import Program, texts
from . import disk
from .disk import Attributes
from .offline import BESIDE, MODULES, NEW, OLD, PLAN
from .plan import Plan, sha256
from .recipe import recipe_names

# The same modules run where an install is patched from elsewhere.
_PROGRAM = Program(
    "patches.offline",
    (
        *(f"patches.recipes.{name}" for name in recipe_names()),
        "patches.plugin.assign",
        "analyzers.remote.far.loader",
    ),
    (3, 10),
)
_SCRIPT = '''\
"""Patch a vLLM from this bundle, or give its bytes back: python apply.py [SITE] [--revert]

SITE is the folder that holds `vllm`, or its environment; without it, the environment of the running
interpreter. Needs nothing but Python 3.10. All or nothing: what was interrupted is taken back by
the next run, as a journal is kept in $DDTREE_STATE, else in ~/.local/state/ddtree.

    --revert  give every byte back
    --force   although processes run from the environment, it holds several vLLM installs, or it is
              a source checkout

Exit codes: 0 done, or nothing to do; 2 usage; 3 no vLLM there; 4 not as expected, refused;
5 failed, and every byte is as it was before; 6 stopped half-way, run it again; 130 interrupted.
"""

import sys

if sys.version_info < (3, 10):
    sys.exit("error: Python 3.10 or later is needed; run this with the interpreter of vLLM")

from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "modules"))

from ddtree.analyzers.remote.far.loader import modernise

modernise(sorted(sys.stdlib_module_names))

from ddtree.patches.offline import main

sys.exit(main(HERE, sys.argv[1:], __doc__))
'''


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
        disk.make_folder(unfinished, Attributes.own(0o755))
        for name, data in contents(plan).items():
            path = unfinished / name
            for parent in reversed(path.parents):
                if unfinished in parent.parents and parent not in made:
                    disk.make_folder(parent, Attributes.own(0o755))
                    made.add(parent)
            disk.write_new(path, data, Attributes.own(0o644))
        disk.rename(unfinished, folder)
    except OSError as error:
        disk.remove(unfinished)
        raise _refusal(folder, f"cannot be written: {error.strerror}") from error


def contents(plan: Plan) -> dict[str, bytes]:
    """Every file of the bundle by its path in it."""
    files = {f"{MODULES}/{path}": data for path, data in _modules().items()}
    for item in plan.edits:
        files[f"{OLD}/{item.file}"] = item.old
        files[f"{NEW}/{item.file}"] = item.new
    files |= {f"{BESIDE}/{path}": data for path, data in plan.installed.items()}
    facts = json.dumps(_facts(plan, files), indent=1) + "\n"
    return files | {
        "apply.py": _SCRIPT.encode(),
        "plan.diff": plan.diff.encode("utf-8", "surrogateescape"),
        PLAN: facts.encode(),
    }


def _modules() -> dict[str, bytes]:
    """The files of the modules, as the interpreter looks for them."""
    found = {}
    for name, text in texts(_PROGRAM).items():
        stem = name.rstrip(".").replace(".", "/")
        found[f"{stem}/__init__.py" if name.endswith(".") else f"{stem}.py"] = text.encode()
    return found


def _facts(plan: Plan, files: Mapping[str, bytes]) -> dict[str, object]:
    return {
        "plan": plan.id,
        "facts": plan.facts,
        "recipe": plan.recipe.name,
        "edits": plan.hashes,
        "beside": plan.beside,
        "reads": {file: sha256(data) for file, data in plan.read.items()},
        "local_edits": list(plan.local_edits),
        "files": {path: sha256(data) for path, data in files.items()},
    }


def _refusal(folder: Path, reason: str) -> ConflictError:
    return ConflictError(
        f"{folder} {reason}",
        expected="a new folder for the bundle",
        hint=f"ls -ld {shlex.quote(str(folder.parent))}",
    )
