"""The environments of interpreters."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.errors import TargetError
from ddtree.analyzers.targets import interpreter
from ddtree.analyzers.targets.interpreter import interpreter_environment, running_environment

from .installs import environment


def _script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def _base_python() -> Path:
    return Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"


def test_the_interpreter_of_a_virtual_environment_is_not_run(tmp_path: Path) -> None:
    site = environment(tmp_path)
    (tmp_path / "bin").mkdir()
    python = _script(tmp_path / "bin/python", f"touch {tmp_path}/ran")
    found = interpreter_environment(python)
    assert (found.sites, found.python) == ((site,), "3.12.4")
    assert not (tmp_path / "ran").exists()


def test_any_other_interpreter_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A hostile current folder or PYTHONPATH must not take part.
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = interpreter_environment(_base_python())
    assert found.python == platform.python_version()
    assert any(site.name.endswith("-packages") for site in found.sites)
    assert tmp_path not in found.sites


def test_a_wrapper_around_a_virtual_environment_is_seen_through(tmp_path: Path) -> None:
    site = environment(tmp_path / "v")
    (tmp_path / "v/bin").mkdir()
    (tmp_path / "v/bin/python").symlink_to(_base_python())
    wrapper = _script(tmp_path / "python", f'echo hello; exec {tmp_path}/v/bin/python "$@"')
    assert interpreter_environment(wrapper).sites == (site,)


def test_a_name_is_looked_up_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = environment(tmp_path)
    (tmp_path / "bin").mkdir()
    _script(tmp_path / "bin/python9", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert interpreter_environment(Path("python9")).sites == (site,)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 7", "exit code 7"),
        ("echo ddtree-paths:nonsense", "cannot be read"),
        ("echo 'ddtree-paths:{\"a\": 1}'", "cannot be read"),
        ("sleep 30", "no answer"),
    ],
)
def test_no_useful_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    monkeypatch.setattr(interpreter, "_TIMEOUT", 0.5)
    with pytest.raises(TargetError, match=words) as caught:
        interpreter_environment(
            _script(tmp_path / "odd", f"exec {body}" if "sleep" in body else body)
        )
    assert caught.value.hint


def test_an_answer_of_other_types_names_no_folder(tmp_path: Path) -> None:
    script = _script(tmp_path / "odd", "echo 'ddtree-paths:[3, null, [4, \"/nowhere\"]]'")
    found = interpreter_environment(script)
    assert (found.sites, found.python) == ((), None)


def test_what_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for path in (tmp_path / "text", tmp_path / "missing", tmp_path, Path("no-such-python")):
        with pytest.raises(TargetError) as caught:
            interpreter_environment(path)
        assert caught.value.hint


def test_the_running_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "script").mkdir()
    (tmp_path / "site").mkdir()
    paths = [str(tmp_path / "script"), "", str(tmp_path / "site"), "/nowhere.zip"]
    monkeypatch.setattr(sys, "path", paths)
    found = running_environment()
    assert found.python == platform.python_version()
    assert found.sites[-1:] == (tmp_path / "site",)
    assert (tmp_path / "script" in found.sites) == bool(sys.flags.safe_path)
