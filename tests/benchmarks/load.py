"""Modules of `benchmarks`, which is run from a checkout and installed with nothing."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from ..checkout import ROOT


def load(name: str) -> Any:
    """The module of this dotted name below `benchmarks`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module(f"benchmarks.{name}")
