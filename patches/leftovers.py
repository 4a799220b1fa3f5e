"""What a change that was killed left, and no journal tells of; the names say whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from . import disk
from .bytecode import compiled
from .journal import Journal
from .place import Place
from .recipe import all_recipes, hooked_files

# New files wait in a folder of the site, and beside each edited file. Bundles of older releases
# called theirs by another word than a plan's id.
_OF = r"\.ddtree-(?:[0-9a-f]{12}|bundle)"
_FOLDER = re.compile(rf"{_OF}(?:\..+)?")
_SCRATCH = re.compile(rf"\..+\.py{_OF}")


def leftovers(place: Place, journals: Iterable[Journal] = ()) -> tuple[str, ...]:
    """The paths of what was left, relative to the site; nothing loads any of it.

    Args:
        journals: what is known of the install: its files are looked beside as well.
    """
    files = {item.file for found in journals for item in found.edits}
    files.update(hooked_files(all_recipes()))
    found = [name for name in _names(place.site) if _FOLDER.fullmatch(name)]
    for folder in sorted({file.rpartition("/")[0] for file in files}):
        names = _names(place.real(f"{folder}/x").parent)
        found += [f"{folder}/{name}" for name in names if _SCRATCH.fullmatch(name)]
    return tuple(found)


def sweep(place: Place, paths: Iterable[str]) -> None:
    """Remove what was left, and the bytecode that may be older than the files.

    Raises:
        OSError: it cannot be removed.
    """
    folders = set()
    for path in paths:
        real = place.real(path)
        disk.remove(real)
        folders.add(real.parent)
    if folders:
        for file in hooked_files(all_recipes()):
            for old in compiled(place, file):
                disk.remove(old)
    for folder in sorted(folders):
        disk.sync_folder(folder)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
