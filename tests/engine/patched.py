"""A vLLM with the patch's own edits and the runtime, in front of the engine environment's own.

The files of the package are links to the environment's, except those that are edited.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ddtree.patches.edit import edited
from ddtree.patches.recipe import all_recipes

from ..checkout import ROOT


def patched_site(packages: Path, folder: Path) -> Path:
    """A folder with the edited `vllm` and the runtime, to be put before `packages`."""
    (recipe,) = (found for found in all_recipes() if found.runner == "v1-runner")
    _link_tree(packages / "vllm", folder / "vllm")
    (folder / "ddtree_runtime").symlink_to(ROOT / "patches" / "runtime")
    for file, anchors in recipe.by_file().items():
        path = folder / file
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(edited(file, data, anchors))
    return folder


def _link_tree(source: Path, target: Path) -> None:
    for folder, _, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for file in files:
            _link(Path(folder) / file, place / file)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        # The cache and the temporary folders are on different disks.
        shutil.copy2(source, target)
