"""Unpack what comes in on stdin, run it, and leave nothing behind.

The whole text of this file is the argument of `python -I -c`. The first line of stdin is a number
of bytes, then come as many bytes of a tar archive. After that, stdin is a lifeline: when it ends,
whoever started this is gone, and everything stops.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import IO

START = (
    "import sys; sys.path.insert(0, {0!r}); from ddtree_harness.director import main; main({0!r})"
)
PATIENCE_SECONDS = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Stopped(Exception):
    """Somebody wants this to end."""


def stop(number: int, frame: object) -> None:
    """The handler of every signal that asks for an end."""
    raise Stopped


def main() -> None:
    """Receive, run, clean up."""
    for number in SIGNALS:
        signal.signal(number, stop)
    # Without a buffer, which would swallow the end of the lifeline.
    with os.fdopen(0, "rb", buffering=0, closefd=False) as lifeline:
        folder = Path(tempfile.mkdtemp(prefix="ddtree-verify-"))
        try:
            sys.exit(run(folder, lifeline))
        except Stopped:
            sys.exit(130)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def run(folder: Path, lifeline: IO[bytes]) -> int:
    """The exit code of what was sent."""
    unpack(received(lifeline), folder)
    for name in ("tmp", "work"):
        (folder / name).mkdir()
    environment = inherited() | {"TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", START.format(str(folder))],
        stdin=subprocess.DEVNULL,
        cwd=folder / "work",
        env=environment,
        start_new_session=True,
    )
    try:
        return watched(child, lifeline)
    finally:
        end(child)


def inherited() -> dict[str, str]:
    """The target's own environment, without what would change what is verified.

    An engine's children are not started with -I everywhere; without Python's variables they are
    the same. Whether Triton interprets kernels is said for each part of a verification: where an
    engine inherits it, vLLM takes another model runner.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name != "TRITON_INTERPRET"
    }


def received(lifeline: IO[bytes]) -> bytes:
    """The archive."""
    head = b""
    while not head.endswith(b"\n"):
        piece = lifeline.read(1)
        if not piece or len(head) > 20:
            raise Stopped
        head += piece
    wanted, pieces = int(head), []
    while wanted:
        piece = lifeline.read(min(wanted, 1 << 20))
        if not piece:
            raise Stopped
        pieces.append(piece)
        wanted -= len(piece)
    return b"".join(pieces)


def unpack(data: bytes, folder: Path) -> None:
    """Write the archive's files below `folder`."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)


def watched(child: subprocess.Popen[bytes], lifeline: IO[bytes]) -> int:
    """Wait for the child's end, or for that of whoever started us."""
    while child.poll() is None:
        ready, _, _ = select.select([lifeline], [], [], 0.1)
        if ready and not lifeline.read(4096):
            raise Stopped
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def end(child: subprocess.Popen[bytes]) -> None:
    """End every process of the child's session: gently, then not."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + PATIENCE_SECONDS
        alive = members(child.pid)
        for process in alive:
            with contextlib.suppress(OSError):
                os.kill(process, number)
        while alive and time.monotonic() < until:
            child.poll()
            time.sleep(0.02)
            alive = members(child.pid)
        if not alive:
            break
    child.wait()


def members(session: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[3]) == session and fields[0] != b"Z":
                    found.append(int(entry.name))
    return found


if __name__ == "__main__":
    main()
