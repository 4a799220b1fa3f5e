"""The wheel cache refuses what would go stale, and never shows half-made folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import wheels


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDTREE_TEST_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("requirement", ["vllm", "vllm>=0.20", "vllm==0.20.*", "vllm==1,!=2"])
def test_a_requirement_without_one_pin_is_refused(requirement: str) -> None:
    with pytest.raises(ValueError, match="is not pinned"):
        wheels.wheel(requirement)


def test_a_folder_is_made_once() -> None:
    made: list[Path] = []

    def build(folder: Path) -> None:
        made.append(folder)
        (folder / "file").write_text("whole")

    first = wheels.derived("group/name", build)
    second = wheels.derived("group/name", build)

    assert first == second == wheels.cache_root() / "group/name"
    assert (first / "file").read_text() == "whole"
    assert len(made) == 1


def test_a_failed_build_leaves_nothing_behind() -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        wheels.derived("group/name", build)

    assert list((wheels.cache_root() / "group").iterdir()) == []


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_a_missing_wheel_is_visible(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(wheels, "_failed", {})

    def refuse(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[:3] == [sys.executable, "-m", "pip"]
        return subprocess.CompletedProcess(command, 1, "", "ERROR: no route to the index\n")

    monkeypatch.setattr(subprocess, "run", refuse)

    with pytest.raises(outcome, match=r"some-wheel==1\.0 cannot be fetched: ERROR: no route"):
        wheels.wheel("some-wheel==1.0")
