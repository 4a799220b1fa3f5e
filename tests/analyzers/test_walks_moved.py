"""Every walk at hand, moved, cut off, put beside a chain: no verdict is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Stage, StageVerdict
from tests.analyzers import inputs, overlay, reports, walks_moved


@pytest.mark.parametrize(("name", "mutation"), list(walks_moved.every()))
def test_a_changed_engine_is_judged_as_it_is(name: str, mutation: str, tmp_path: Path) -> None:
    make, truth = walks_moved.MUTATIONS[mutation]
    place = overlay.mini_install(tmp_path, make(inputs.POSITIVES[name]))

    found = reports.by_path(reports.inspect(place))[EnginePath.V1].stages[Stage.VERIFICATION]

    assert found.verdict is truth
    if truth is StageVerdict.UNKNOWN:
        assert found.reason
