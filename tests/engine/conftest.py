"""Engines run in subprocesses of an environment of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import environment, patched, runs

Run = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the engine environment; `make test-engines` runs it."""
    for item in items:
        if isinstance(item, pytest.Function) and "python" in item.fixturenames:
            item.add_marker(pytest.mark.engine)


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
