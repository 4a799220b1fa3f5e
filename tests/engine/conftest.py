"""Engines run in subprocesses of an environment of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import environment, installs, runs

Run = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the engine environment; `make test-engines` runs it."""
    for item in items:
        if isinstance(item, pytest.Function) and "run" in item.fixturenames:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment whose vLLM is patched."""
    folder = tmp_path_factory.mktemp("patched") / "env"
    return installs.patched(environment.engine_python(), folder)


@pytest.fixture(scope="session")
def run(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs cases in one process; results by name."""

    def start(cases: dict[str, runs.Case], **variables: str) -> dict[str, Any]:
        return runs.run(python, tmp_path_factory.mktemp("engine"), cases, **variables)

    return start
