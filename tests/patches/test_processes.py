"""Promise 9: a live process is named, and refused without `--force`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import perform
from ddtree.patches.processes import processes_of
from tests.analyzers.targets import installs

from . import mini


def test_a_live_process_is_named(install: mini.Mini, tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    site = installs.environment(prefix)
    live = mini.make(tmp_path / "other", site=site)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    command = [str(prefix / "bin" / "python"), "-S", "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        mini.refused(
            live, rf"{process.pid} \({prefix}/bin/python -S .*was started as", target=str(prefix)
        )
        assert isinstance(live.apply(target=str(prefix), force=True), perform.Applied)
        with pytest.raises(ConflictError, match=str(process.pid)):
            live.revert(target=str(prefix))
        process.communicate(b"\n")
    # Another environment is none of its business.
    assert processes_of(mini.place_of(install)).running == ()


@pytest.mark.parametrize("how", ["relative", "activated", "linked"])
def test_a_live_process_is_known_by_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    prefix = tmp_path / "env"
    live = mini.make(tmp_path / "other", site=installs.environment(prefix))
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "link").symlink_to(prefix)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{prefix / 'bin'}:{os.environ['PATH']}")
    names = {
        "relative": "env/bin/python",
        "activated": "python",
        "linked": f"{tmp_path}/link/bin/python",
    }
    command = [names[how], "-S", "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        mini.refused(live, rf"{process.pid} .*was started as {names[how]}", target=str(prefix))
        process.communicate(b"\n")
    with subprocess.Popen(["sleep", "60", "python"]) as other:
        assert isinstance(live.apply(target=str(prefix)), perform.Applied)
        other.terminate()


def test_a_process_with_the_site_on_its_path_is_named(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/nowhere:{install.site}")
    command = [sys.executable, "-S", "-c", "print(1, flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        mini.refused(install, rf"{process.pid} .*has {install.site} on its PYTHONPATH")
        process.communicate(b"\n")
    # It is exported in a shell, and no Python runs there.
    with subprocess.Popen(["sleep", "60"]) as other:
        assert isinstance(install.apply(), perform.Applied)
        other.terminate()


def test_a_process_that_has_vllm_loaded_is_named(install: mini.Mini) -> None:
    library = install.site / "vllm" / "_C.so"
    library.write_bytes(b"\0" * 4096)
    code = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1)\n"
    code += "print(1, flush=True); input()"
    command = [sys.executable, "-c", code, str(library)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        mini.refused(install, rf"{process.pid} .*has files of {install.site}/vllm loaded")
        process.communicate(b"\n")
