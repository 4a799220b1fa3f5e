"""What an install is that holds hooks of ddtree, and of which no journal of this user tells."""

from __future__ import annotations

from collections.abc import Mapping

from ..analyzers.errors import ConflictError
from ..analyzers.targets.source import Target
from .distribution import PACKAGE
from .marks import holds, unedited
from .place import Place
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


def beside(place: Place, installed: Mapping[str, bytes]) -> tuple[str, ...]:
    """What lies beside vLLM and is not as this ddtree lays it; nothing of it is all of it."""
    return runtime_changes({path: sha256(data) for path, data in installed.items()}, place)


def runtime_is_there(place: Place) -> bool:
    """Whether some runtime is there."""
    return (place.site / PACKAGE).is_dir()


def _recorded(target: Target, file: str) -> bool:
    entry = target.record.entries.get(file) if target.record else None
    return entry is not None and entry.digest is not None
