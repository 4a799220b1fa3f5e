"""What an install is that holds hooks of ddtree, and of which no journal of this user tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..analyzers.errors import ConflictError
from ..analyzers.targets.source import Target
from .distribution import PACKAGE
from .marks import MARK, holds, unedited
from .plan import foreign_edits, sha256
from .recipe import all_recipes, choose
from .undo import runtime_changes

WHOLE = (
    "Patched, and no journal of this user says so: a bundle or another user applied it, or it was "
    "copied here. Every file is as this ddtree makes it."
)
HOOKS = (
    "Hooks of ddtree are here, and no journal of this user: a bundle or another user applied them, "
    "or the journal is gone. Not all of it is as this ddtree makes it."
)
RUNTIME = (
    "The runtime of ddtree is here without its hooks, and no journal of this user: a bundle or "
    "another user left it, or the journal is gone."
)

LEFT = "Not patched. A change that was killed left files here, which nothing loads."


def edited_as_today(target: Target) -> bool:
    """Whether the edits are exactly what this ddtree makes of the files that RECORD tells of."""
    try:
        recipe, _ = choose(target.install.version, all_recipes())
    except ConflictError:
        return False
    present = target.source.files()
    for file, anchors in recipe.by_file().items():
        if file not in present or not _recorded(target, file):
            return False
        data = target.source.read(file)
        pairs = [(anchor.name, anchor.hook) for anchor in anchors]
        if not holds(data, pairs) or foreign_edits({file: unedited(data)}, target.record):
            return False
    return True


def unconfirmed(target: Target, files: Iterable[str]) -> tuple[str, ...]:
    """The files with hooks of which RECORD does not say what they were."""
    data = {file: target.source.read(file) for file in files if file in target.source.files()}
    old = {file: unedited(content) for file, content in data.items() if MARK in content}
    foreign = foreign_edits(old, target.record)
    return tuple(file for file in old if file in foreign or not _recorded(target, file))


def beside(site: Path, installed: Mapping[str, bytes]) -> tuple[str, ...]:
    """What lies beside vLLM and is not as this ddtree lays it; nothing of it is all of it."""
    return runtime_changes({path: sha256(data) for path, data in installed.items()}, site)


def runtime_is_there(site: Path) -> bool:
    """Whether some runtime is there."""
    return (site / PACKAGE).is_dir()


def _recorded(target: Target, file: str) -> bool:
    entry = target.record.entries.get(file) if target.record else None
    return entry is not None and entry.digest is not None
