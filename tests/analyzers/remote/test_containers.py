"""The whole command on an install in a container, through stand-ins of what manages it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddtree.analyzers.inspect import inspect_target
from ddtree.analyzers.result import to_json
from tests.analyzers import mini
from tests.analyzers.remote.test_report import CHAIN
from tests.analyzers.transports.test_container import bin_

__all__ = ["bin_"]


def _inspect(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ddtree", "inspect", "host", "--no-cache", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.parametrize("address", ["docker://vllm-1", "podman://vllm-1", "kubectl://ml/pod-0"])
def test_the_report_is_that_of_the_same_install_here(
    address: str, bin_: Path, tmp_path: Path
) -> None:
    site = mini.install(tmp_path, CHAIN)

    done = _inspect("--format", "json", "--python", str(site), address)

    assert (done.returncode, done.stderr) == (0, "")
    here = to_json(inspect_target(str(site), cache=False)) | {"target": address}
    assert json.loads(done.stdout) == here
    # One command, whose words are those of an exec.
    assert len((bin_ / "words").read_text().splitlines()) == 1


def test_as_root_through_sudo(bin_: Path, tmp_path: Path) -> None:
    site = mini.install(tmp_path, CHAIN)

    done = _inspect("--sudo", "-q", "--python", str(site), "docker://vllm-1")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((bin_ / "words").read_text().splitlines()[0])[:3] == ["sudo", "-n", "--"]


def test_failures_stand_beside_what_answers(bin_: Path, tmp_path: Path) -> None:
    site = mini.install(tmp_path, CHAIN)
    hosts = tmp_path / "hosts"
    hosts.write_text(f"docker://vllm-1 {site}\ndocker://stopped\n")

    done = _inspect("--hosts", str(hosts), "-q", "--require", "tree", str(site))

    assert done.returncode == 3
    here, there, stopped = done.stdout.splitlines()
    assert here.startswith(f"{site}: linear: ")
    assert there == here.replace(str(site), "docker://vllm-1", 1)
    assert stopped.startswith("docker://stopped: failed: docker://stopped is not running")


def test_the_worst_exit_code_counts(bin_: Path, tmp_path: Path) -> None:
    site = mini.install(tmp_path, CHAIN)

    done = _inspect("-q", "--require", "tree", str(site), f"{site}/vllm")

    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2


def test_an_interrupt_ends_the_command_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that hangs: nothing of ours is left in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    docker = folder / "docker"
    # The shell keeps stdout open, so that there is something to wait for.
    docker.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\ncat > {tmp_path}/heard\nexit 0\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    command = [sys.executable, "-m", "ddtree", "inspect", "host", "-q", "docker://vllm-1"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (tmp_path / "heard").exists() or not (tmp_path / "heard").stat().st_size:
        assert child.poll() is None
        time.sleep(0.01)

    child.send_signal(2)
    _, err = child.communicate(timeout=60)

    assert (child.returncode, err) == (130, b"interrupted\n")
    _gone(int((tmp_path / "pid").read_text()))


def _gone(pid: int) -> None:
    """Wait until a process has ended, be it that nobody has taken note of its end.

    Raises:
        TimeoutError: it goes on.
    """
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if not Path(f"/proc/{pid}/cmdline").read_bytes():
                return
        except OSError:
            return
        time.sleep(0.05)
    raise TimeoutError(f"process {pid} goes on")
