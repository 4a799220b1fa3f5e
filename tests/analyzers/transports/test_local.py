"""Processes on this machine: lines, logs, and an end that leaves nothing behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtree.analyzers.errors import TargetError
from ddtree.analyzers.transports import Running
from ddtree.analyzers.transports.lines import Lines
from ddtree.analyzers.transports.local import LocalTransport
from ddtree.patches.verify import archive
from ddtree.patches.verify.harness import boot

# A harness that starts a stubborn grandchild in a process group of its own, and waits.
STUBBORN = """
import os, subprocess, sys, time
def main(folder):
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], process_group=0)
    print("started", os.getpid(), child.pid, folder, flush=True)
    time.sleep(600)
"""
QUICK = """
import os, sys
def main(folder):
    print("in", os.getcwd(), os.environ.get("PYTHONPATH"), os.environ["TMPDIR"], flush=True)
    sys.exit(7)
"""


def packed(director: str) -> bytes:
    """An archive whose harness is this text."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as opened:
        for name, text in (("__init__", ""), ("director", director)):
            entry = tarfile.TarInfo(f"ddtree_harness/{name}.py")
            entry.size = len(text)
            opened.addfile(entry, io.BytesIO(text.encode()))
    return f"{len(buffer.getvalue())}\n".encode() + buffer.getvalue()


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the far side makes its folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    return tmp_path


def start(director: str) -> Running:
    command = [sys.executable, "-I", "-B", "-c", archive.boot()]
    return LocalTransport().start(command, packed(director))


def lines(running: Running) -> Iterator[str]:
    reader = Lines(running)
    while (found := reader.next(30.0)) is not None:
        yield found.decode()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pids: list[int], seconds: float = 15.0) -> bool:
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(alive, pids))


def test_lines_log_and_exit_code() -> None:
    """The three streams of a process, whatever the order of its output."""
    code = "import sys; print('a\\r'); sys.stderr.write('b\\nc'); print('d', end=''); sys.exit(3)"
    running = LocalTransport().start([sys.executable, "-I", "-c", code], b"not read" * 1_000_000)
    assert list(lines(running)) == ["a", "d"]
    assert running.close() == 3
    assert running.log() == ("b", "c")


def test_no_line_yet_is_a_timeout() -> None:
    """A caller decides what silence means."""
    running = LocalTransport().start(["sleep", "60"], b"")
    with pytest.raises(TimeoutError):
        Lines(running).next(0.05)
    os.kill(running._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]  # the local one
    assert running.close() != 0


def test_an_interpreter_that_is_not_there() -> None:
    """It is the target that is wrong."""
    with pytest.raises(TargetError, match="cannot be run: No such file"):
        LocalTransport().start(["/nowhere/python", "-c", ""], b"")


def test_what_is_sent_runs_in_a_folder_that_goes_away(folders: Path) -> None:
    """Isolated from the caller's Python variables; its exit code is passed on."""
    running = start(QUICK)
    (found,) = lines(running)
    word, cwd, path, temporary = found.split()
    assert (word, path) == ("in", "None")
    assert Path(cwd).parent == Path(temporary).parent
    assert running.close() == 7
    assert list(folders.iterdir()) == []


def test_closing_ends_every_process_and_removes_the_folder(folders: Path) -> None:
    """Also one that ignores SIGTERM, in a process group of its own."""
    running = start(STUBBORN)
    _, child, grandchild, folder = next(lines(running)).split()
    pids = [int(child), int(grandchild)]
    assert all(map(alive, pids))
    assert Path(folder).is_dir()
    assert running.close() == 130
    assert gone(pids)
    assert list(folders.iterdir()) == []


def test_when_the_near_side_is_killed_nothing_stays(folders: Path) -> None:
    """The end of stdin is enough, since a killed process cleans nothing up."""
    near = """
import sys
from tests.analyzers.transports import test_local
running = test_local.start(test_local.STUBBORN)
print(running._process.pid, next(test_local.lines(running)), flush=True)
running.chunk(600.0)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", near],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    supervisor, _, child, grandchild, _ = process.stdout.readline().split()
    pids = [int(pid) for pid in (supervisor, child, grandchild)]
    assert all(map(alive, pids))
    process.kill()
    process.wait()
    process.stdout.close()
    assert gone(pids)
    assert list(folders.iterdir()) == []


@pytest.mark.parametrize("sent", [b"", b"12", b"12\nshort", b"x" * 100])
def test_a_broken_archive_runs_nothing(folders: Path, sent: bytes) -> None:
    """What is cut off is not unpacked, and leaves no folder."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", archive.boot()], input=sent, capture_output=True, check=False
    )
    assert done.returncode == 130
    assert done.stdout == b""
    assert list(folders.iterdir()) == []


def test_only_members_of_the_session_are_ended() -> None:
    """This test's own session is not the child's."""
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        assert boot.members(child.pid) == [child.pid]
        assert os.getpid() not in boot.members(child.pid)
    finally:
        child.kill()
        child.wait()
    assert boot.members(child.pid) == []


def test_what_was_not_closed_ends_with_us() -> None:
    """An interrupt that leaves threads behind leaves no process behind."""
    code = """
import sys
from ddtree.analyzers.transports.local import LocalTransport
running = LocalTransport().start(["sleep", "600"], b"")
print(running._process.pid, flush=True)
sys.exit(130)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 130
    assert gone([int(done.stdout)])


def test_a_caller_in_haste_waits_no_longer_than_it_says() -> None:
    """What does not end by itself is killed."""
    running = LocalTransport().start(["sleep", "600"], b"")
    assert running.close(0.05) == -signal.SIGKILL
