"""What the tests of the patch engine share."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import mini


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("DDTREE_STATE", str(folder))
    return folder


@pytest.fixture
def install(tmp_path: Path) -> mini.Mini:
    """A tiny install that nothing was done to."""
    return mini.make(tmp_path)
