"""Unpack what comes in on stdin, run it, and leave nothing behind.

The whole text of this file is the argument of `python -I -c`. The first line of stdin is a number
of bytes, then come as many bytes of a tar archive. After that, stdin is a lifeline: when it ends,
whoever started this is gone, and everything stops.
"""

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

START = "import sys; sys.path.insert(0, {0!r}); from ddtree_harness.director import main; main({0!r})"
PATIENCE_SECONDS = 5.0


class Stopped(Exception):
    """Somebody wants this to end."""


def stop(number, frame):
    raise Stopped


def main():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    # Kept by descriptor: a buffered reader would swallow the end of the lifeline.
    with os.fdopen(0, "rb", buffering=0, closefd=False) as lifeline:
        folder = tempfile.mkdtemp(prefix="ddtree-verify-")
        try:
            sys.exit(run(folder, lifeline))
        except Stopped:
            sys.exit(130)
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            shutil.rmtree(folder, ignore_errors=True)


def run(folder, lifeline):
    unpack(received(lifeline), folder)
    os.mkdir(os.path.join(folder, "tmp"))
    os.mkdir(os.path.join(folder, "work"))
    # Isolated children of the engine do not inherit -I everywhere; without these they are.
    environment = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
    environment.update(TMPDIR=os.path.join(folder, "tmp"), PYTHONDONTWRITEBYTECODE="1")
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", START.format(folder)],
        stdin=subprocess.DEVNULL,
        cwd=os.path.join(folder, "work"),
        env=environment,
        start_new_session=True,
    )
    try:
        return watched(child, lifeline)
    finally:
        end(child)


def received(lifeline):
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


def unpack(data, folder):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)


def watched(child, lifeline):
    while child.poll() is None:
        ready, _, _ = select.select([lifeline], [], [], 0.1)
        if ready and not lifeline.read(4096):
            raise Stopped
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def end(child):
    """End every process of the child's session: gently, then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + PATIENCE_SECONDS
        alive = members(child.pid)
        for process in alive:
            try:
                os.kill(process, number)
            except OSError:
                pass
        while alive and time.monotonic() < until:
            child.poll()
            time.sleep(0.02)
            alive = members(child.pid)
        if not alive:
            break
    child.wait()


def members(session):
    """Processes of a session that still run."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != b"Z":
                found.append(int(name))
    return found


if __name__ == "__main__":
    main()
