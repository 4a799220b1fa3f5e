"""Walking package folders, whatever lies in them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.result import Unreadable
from ddtree.analyzers.targets import walk
from ddtree.analyzers.targets.walk import Walk

from .installs import PACKAGE, write


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write(tmp_path, PACKAGE) / "vllm"


def _reasons(found: Walk) -> dict[str, str]:
    return {problem.file: problem.reason for problem in found.problems}


def test_files_are_found_sorted_with_sizes(package: Path) -> None:
    write(package, {"__pycache__/a.pyc": "x", "v1/__pycache__/b.pyc": "x"})
    found = Walk({"vllm": package})
    assert list(found.files) == sorted(PACKAGE)
    assert found.files["vllm/v1/sampler.py"].size == len(PACKAGE["vllm/v1/sampler.py"])
    assert found.problems == []


def test_parts_may_lie_anywhere_and_be_single_files(package: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"hook.py": "", "deep/pkg/__init__.py": ""})
    parts = {
        "vllm": package,
        "hook.py": tmp_path / "elsewhere/hook.py",
        "deep/pkg": tmp_path / "elsewhere/deep/pkg",
    }
    found = Walk(parts)
    assert list(found.files) == sorted([*PACKAGE, "hook.py", "deep/pkg/__init__.py"])


@pytest.mark.parametrize("target", [".", "..", "../..", "/"])
def test_a_link_upwards_is_named_and_not_followed(package: Path, target: str) -> None:
    (package / "v1/loop").symlink_to(target)
    found = Walk({"vllm": package})
    assert list(found.files) == sorted(PACKAGE)
    assert list(_reasons(found)) == ["vllm/v1/loop"]


def test_links_in_a_circle_are_named(package: Path) -> None:
    (package / "a.py").symlink_to("b.py")
    (package / "b.py").symlink_to("a.py")
    (package / "gone.py").symlink_to("nowhere")
    reasons = _reasons(Walk({"vllm": package}))
    assert sorted(reasons) == ["vllm/a.py", "vllm/b.py", "vllm/gone.py"]
    assert all("leads nowhere" in reason for reason in reasons.values())


def test_a_linked_folder_is_read_once_and_real_paths_win(package: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"kernel.py": ""})
    (package / "a_outside").symlink_to(tmp_path / "outside")
    (package / "b_outside").symlink_to(tmp_path / "outside")
    (package / "a_v1").symlink_to("v1")
    (package / "linked.py").symlink_to("v1/sampler.py")
    # Two folders that lead into each other.
    (tmp_path / "outside/back").symlink_to(package / "v1")
    found = Walk({"vllm": package})
    links = [path for path in found.files if path not in PACKAGE]
    assert len(links) == 2
    assert "vllm/linked.py" in links
    assert any(path in links for path in ("vllm/a_outside/kernel.py", "vllm/b_outside/kernel.py"))
    assert len(found.problems) == 3


def test_pipes_are_named_and_not_opened(package: Path) -> None:
    os.mkfifo(package / "pipe.py")
    (package / "link.py").symlink_to("pipe.py")
    reasons = _reasons(Walk({"vllm": package}))
    assert sorted(reasons) == ["vllm/link.py", "vllm/pipe.py"]


def test_a_folder_that_may_not_be_listed_is_named(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def guarded(path: str) -> Any:
        if path.endswith("v1"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = Walk({"vllm": package})
    assert found.problems == [Unreadable("vllm/v1", "Permission denied")]
    assert "vllm/__init__.py" in found.files


def test_a_part_that_is_gone_is_named(tmp_path: Path) -> None:
    found = Walk({"vllm": tmp_path / "vllm"})
    assert found.problems == [Unreadable("vllm", "No such file or directory")]


def test_names_that_are_no_utf8_stay_printable_and_readable(package: Path) -> None:
    (package / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    found = Walk({"vllm": package})
    assert "vllm/caf\\xe9.py" in found.files
    assert Path(found.real["vllm/caf\\xe9.py"]).read_text() == "x = 1\n"
    json.dumps(list(found.files), ensure_ascii=False).encode("utf-8")


def test_too_many_files_end_the_walk(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_FILES", 2)
    found = Walk({"vllm": package})
    assert any("stopped" in reason for reason in _reasons(found).values())


def _edits(path: Path) -> Iterator[None]:
    # File systems keep time in steps of some milliseconds.
    time.sleep(0.03)
    path.write_text("other")
    yield
    time.sleep(0.03)
    times = path.stat()
    path.write_text("again")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    yield
    copy = path.with_suffix(".new")
    copy.write_text("again")
    copy.replace(path)
    yield


def test_the_stamp_changes_with_every_edit(package: Path) -> None:
    path = package / "v1/sampler.py"
    stamps = [Walk({"vllm": package}).files["vllm/v1/sampler.py"].stamp]
    for _ in _edits(path):
        stamps.append(Walk({"vllm": package}).files["vllm/v1/sampler.py"].stamp)
    assert len(set(stamps)) == 4
    assert Walk({"vllm": package}).files["vllm/v1/sampler.py"].stamp == stamps[-1]
