"""Engines run in subprocesses of an environment of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import environment, patched, runs

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of the engine environment."""
    return environment.engine_python()


@pytest.fixture(scope="session")
def site(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the patched vLLM."""
    packages = environment.site_packages(python)
    return patched.patched_site(packages, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def run(python: Path, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs cases in one process; results by name."""

    def start(cases: dict[str, runs.Case], **variables: str) -> dict[str, Any]:
        return runs.run(python, site, tmp_path_factory.mktemp("engine"), cases, **variables)

    return start
