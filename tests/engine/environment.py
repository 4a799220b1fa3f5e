"""The environment in which engines run: built once with pip, kept outside the checkout.

It is keyed by its pins and by the interpreter, and lies in the cache of `tests.wheels`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from .. import wheels
from ..checkout import ROOT

PINS = ROOT / "requirements" / "engine.txt"


def engine_python() -> Path:
    """The interpreter of the engine environment; builds it on first use, which takes minutes.

    Where the pins cannot be fetched, the test is skipped with pip's own words, and fails in CI.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(PINS.read_bytes()).hexdigest()[:16]
    return wheels.derived(f"engine/{version}-{digest}", _build) / "bin" / "python"


def site_packages(python: Path) -> Path:
    """Where the environment of this interpreter keeps its packages."""
    (found,) = python.parents[1].glob("lib/python*/site-packages")
    return found


def _build(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run(
        [*install, "--requirement", str(PINS)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        wheels.unavailable(f"the engine environment cannot be built: {'; '.join(errors)}")
