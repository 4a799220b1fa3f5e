"""The runtime under the name that it has in a target, for what the harness imports there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import ROOT


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make `ddtree_runtime` importable for one test."""
    (tmp_path / "ddtree_runtime").symlink_to(ROOT / "patches" / "runtime")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "ddtree_runtime"]:
        del sys.modules[name]
