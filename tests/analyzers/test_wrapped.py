"""Runners whose functions are wrapped by a package that lies beside vLLM."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ddtree.analyzers.inspect import inspect_target
from ddtree.analyzers.result import EnginePath, Stage, StageVerdict, Verdict
from tests.analyzers import grafts, mini, overlay, plugins, reports
from tests.analyzers.targets import installs


def verification(place: Path, path: EnginePath = EnginePath.V1) -> StageVerdict:
    return reports.stages(reports.inspect(place))[path][Stage.VERIFICATION]


@pytest.mark.parametrize("layout", grafts.LAYOUTS)
def test_a_walk_is_found_however_the_package_is_laid_out(layout: str, tmp_path: Path) -> None:
    report = reports.inspect(grafts.install(tmp_path, grafts.LAYOUTS[layout], plugins.WALK))

    found = reports.by_path(report)
    assert found[EnginePath.V1].verdict is Verdict.TREE
    assert found[EnginePath.V2].verdict is Verdict.LINEAR
    (shown,) = reports.evidence(report, EnginePath.V1, Stage.VERIFICATION)
    assert shown.file == "graft/accept.py"
    assert shown.calls[0].file == grafts.RUNNER


@pytest.mark.parametrize("layout", grafts.LAYOUTS)
def test_a_chain_beside_vllm_is_no_tree(layout: str, tmp_path: Path) -> None:
    place = grafts.install(tmp_path, grafts.LAYOUTS[layout], plugins.CHAIN)

    assert verification(place) is not StageVerdict.TREE


@pytest.mark.parametrize("layout", grafts.LAYOUTS)
def test_a_seam_without_a_walk_stays_a_chain(layout: str, tmp_path: Path) -> None:
    """The walk is in the package, and another seam would run it."""
    place = grafts.install(tmp_path, grafts.LAYOUTS[layout], plugins.WALK, seam="nothing")

    assert verification(place) is StageVerdict.LINEAR


@pytest.mark.parametrize("kind", grafts.IDLE)
def test_seams_that_run_nothing_stay_a_chain(kind: str, tmp_path: Path) -> None:
    place = grafts.install(tmp_path, grafts.IDLE[kind], plugins.WALK)

    assert verification(place) is StageVerdict.LINEAR


@pytest.mark.parametrize("record", [True, False])
def test_the_other_runner_may_be_the_wrapped_one(record: bool, tmp_path: Path) -> None:
    layout = grafts.LAYOUTS["table"]
    place = grafts.install(tmp_path, layout, plugins.WALK, runner=grafts.V2_RUNNER, record=record)

    assert verification(place, EnginePath.V2) is StageVerdict.TREE
    assert verification(place, EnginePath.V1) is StageVerdict.LINEAR


def test_a_package_that_is_gone_leaves_the_chain_and_is_named(tmp_path: Path) -> None:
    place = grafts.install(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)
    shutil.rmtree(place / "graft")

    report = reports.inspect(place)

    assert report.verdict is Verdict.LINEAR
    assert report.install.modified == (grafts.RUNNER,)
    assert any(f"{grafts.RUNNER} imports graft, which is missing" in n for n in report.notes)


def test_decorators_that_cannot_be_followed_leave_the_verdict_open(tmp_path: Path) -> None:
    """Nothing tells the package from any dependency, so its code is not read."""
    place = grafts.released(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)

    found = reports.by_path(reports.inspect(place))[EnginePath.V1].stages[Stage.VERIFICATION]

    assert found.verdict is StageVerdict.UNKNOWN
    assert "_seam('decide')" in found.reason


def test_the_report_names_the_package_and_what_decides_which_code_runs(tmp_path: Path) -> None:
    place = grafts.install(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)

    report = reports.inspect(place)

    named, condition = report.notes
    assert named.startswith(f"{grafts.RUNNER} imports graft, a package beside vLLM: 4 files of it")
    assert "wraps GPUModelRunner._sample in decide (graft/decide.py:6)" in condition
    assert "where `metadata is None`" in condition
    stock = reports.inspect(mini.install(tmp_path / "stock", grafts.CHAIN))
    assert report.coverage.files == stock.coverage.files + 4


def test_only_what_the_edits_import_is_read(tmp_path: Path) -> None:
    place = grafts.install(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)
    before = reports.inspect(place)
    installs.write(place, {"graft/unused.py": "import os\n", "other/__init__.py": "x = 1\n"})

    after = reports.inspect(place)

    assert after.coverage == before.coverage


def test_a_dependency_of_the_release_is_not_read(tmp_path: Path) -> None:
    """Unedited files import it too, so no edit brought it."""
    place = grafts.install(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)
    installs.write(place, {"torch/__init__.py": "import torch.nn\n", "torch/nn.py": ""})

    report = reports.inspect(place)

    assert not any("torch" in note for note in report.notes)
    assert reports.by_path(report)[EnginePath.V1].verdict is Verdict.TREE


def test_a_kept_report_is_dropped_when_the_package_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDTREE_CACHE", str(tmp_path / "cache"))
    place = grafts.install(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)

    def verdict() -> Verdict:
        return inspect_target(str(place)).verdict

    assert [verdict(), verdict()] == [Verdict.TREE, Verdict.TREE]
    overlay.write(place, "graft/accept.py", plugins.CHAIN)
    assert verdict() is Verdict.LINEAR
    overlay.write(place, "graft/accept.py", plugins.WALK)
    assert verdict() is Verdict.TREE
    shutil.rmtree(place / "graft")
    assert verdict() is Verdict.LINEAR
    installs.write(place, grafts.LAYOUTS["table"] | {"graft/__init__.py": ""})
    overlay.write(place, "graft/accept.py", plugins.WALK)
    assert verdict() is Verdict.TREE


def inside(root: Path, *, record: bool = True) -> Path:
    """An install whose runner is wrapped by a package inside of vLLM."""
    layout = {
        path.replace("graft", "vllm/graft"): text.replace("graft", "vllm.graft")
        for path, text in grafts.LAYOUTS["table"].items()
    }
    place = grafts.install(root, layout, plugins.WALK, record=record)
    installs.write(place, {"vllm/graft/__init__.py": "", "vllm/graft/accept.py": plugins.WALK})
    runner = (place / grafts.RUNNER).read_text().replace("from graft", "from vllm.graft")
    overlay.write(place, grafts.RUNNER, runner)
    return place


def test_the_package_may_lie_inside_of_vllm(tmp_path: Path) -> None:
    place = inside(tmp_path)

    assert verification(place) is StageVerdict.TREE
    assert reports.inspect(place).notes[0].startswith(f"{grafts.RUNNER}:")


@pytest.mark.parametrize("record", [True, False])
def test_a_package_inside_of_vllm_that_is_gone_is_named(record: bool, tmp_path: Path) -> None:
    place = inside(tmp_path, record=record)
    shutil.rmtree(place / "vllm/graft")

    notes = reports.inspect(place).notes

    said = "imports vllm.graft.seams, which is missing: what depends on it cannot run"
    assert f"{grafts.RUNNER} {said}" in notes


@pytest.mark.parametrize("compiled", ["vllm/graft/seams.abi3.so", "vllm/graft/seams/data.txt"])
def test_what_is_no_source_may_be_imported_all_the_same(compiled: str, tmp_path: Path) -> None:
    place = inside(tmp_path)
    (place / "vllm/graft/seams.py").unlink()
    installs.write(place, {compiled: ""})

    assert not any("missing" in note for note in reports.inspect(place).notes)
