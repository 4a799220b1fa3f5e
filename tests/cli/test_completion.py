"""What a shell is offered after TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ddtree
from ddtree.analyzers.rules import all_rules
from ddtree.cli import options

# Absolute, because the processes below run in another folder.
PACKAGES = str(Path(ddtree.__file__).absolute().parents[1])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "env").mkdir()
    for name in ("elephant.whl", "egg.tar.gz", "else.txt", "other.whl"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_targets_are_folders_and_archives(folder: Path) -> None:
    assert options.complete_target("e") == ["egg.tar.gz", "elephant.whl", "env/"]
    assert options.complete_target(f"{folder}/o") == [f"{folder}/other.whl"]
    assert options.complete_target("nowhere/x") == []


def test_the_home_folder_stays_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert options.complete_target("~/en") == ["~/env/"]


def test_rules_are_offered_by_name() -> None:
    name = all_rules()[0].name
    assert name in options.complete_rule(name[:3])
    assert options.complete_rule("no-such") == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ddtree inspect ", {"host", "rules", "compare"}),
        ("ddtree inspect host --format ", {"terminal", "json", "sarif", "markdown"}),
        ("ddtree inspect host --require ", {"tree", "linear"}),
        ("ddtree inspect host e", {"egg.tar.gz", "elephant.whl", "env/"}),
        ("ddtree inspect compare env e", {"egg.tar.gz", "elephant.whl", "env/"}),
    ],
)
def test_bash_is_offered_commands_values_and_paths(
    folder: Path, words: str, offered: set[str]
) -> None:
    pieces = words.split(" ")
    environment = os.environ | {
        "PYTHONPATH": PACKAGES,
        "_DDTREE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(pieces) - 1),
    }
    result = subprocess.run(
        [sys.executable, "-m", "ddtree"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    assert set(result.stdout.split()) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(shell: str) -> None:
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "ddtree", "--show-completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0
    assert f"complete_{shell}" in result.stdout
