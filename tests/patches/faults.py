"""Run one command and hit one of its mutating system calls, with strace's fault injection.

A server process has everything imported and forks one child per command, so that a run takes a
tenth of a second. The child stops itself until strace is attached to it.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from ddtree.analyzers.errors import DdtreeError
from ddtree.patches import offline, perform, preflight
from ddtree.patches.processes import processes_of

from .. import wheels
from . import mini, users

# Everything that can change a file system. `openat` counts only where it creates.
MUTATING = (
    "openat,creat,write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,"
    "mkdirat,symlink,symlinkat,link,linkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,"
    "fchownat,lchown,setxattr,fsetxattr,lsetxattr,removexattr,fremovexattr,truncate,ftruncate,"
    "fallocate,utimensat,utime,utimes,fsync,fdatasync,sync,syncfs"
)
# A child that ends like this met an error that no command may end with.
SURPRISE = 99
_CALL = re.compile(r"^(\w+)\((.*)")
_PR_SET_PTRACER = 0x59616D61


@dataclass(frozen=True, slots=True)
class Point:
    """The `ordinal`-th call of a system call's name, counted from 1; `text` is what it was."""

    name: str
    ordinal: int
    text: str


class Server:
    """A process that runs `perform` functions in forked children, as this user or another one."""

    def __init__(self, install: mini.Mini, user: int | None = None) -> None:
        strace = shutil.which("strace")
        if strace is None:
            wheels.unavailable("strace is missing; install the package strace")
        self._strace = strace
        self._log = install.root.parent / f"{install.root.name}.strace"
        # No call that could be hit passes on what an error says.
        self._said = mmap.mmap(-1, 1 << 16)
        asked, self._asks = os.pipe()
        self._answers, answered = os.pipe()

        def serve() -> None:
            if user is not None:
                users.become(user)
            os.close(self._asks)
            _serve(install, os.fdopen(asked), os.fdopen(answered, "w"), self._said)

        self._pid = users.forked(serve)
        os.close(asked)
        os.close(answered)
        self._lines = os.fdopen(self._answers)
        assert self._line() == "ready\n"

    @property
    def said(self) -> str:
        """What the last action's error said, if it was one."""
        return self._said[:].rstrip(b"\0").decode()

    def close(self) -> None:
        """End the process."""
        os.close(self._asks)
        os.waitpid(self._pid, 0)
        self._lines.close()
        self._log.unlink(missing_ok=True)

    def points(self, action: str) -> list[Point]:
        """Run an action whole, and list its mutating system calls."""
        code = self.run(action, f"trace={MUTATING}")
        assert code == 0, f"{action} ended with {code}"
        counts: Counter[str] = Counter()
        found = []
        for line in self._log.read_text(errors="replace").splitlines():
            call = _CALL.match(line)
            if call is not None:
                counts[call[1]] += 1
                if call[1] != "openat" or "O_CREAT" in line:
                    found.append(Point(call[1], counts[call[1]], line))
        return found

    def run(self, action: str, *expressions: str) -> int:
        """Run an action under strace; its exit code, negative for a signal."""
        self._said[:] = bytes(len(self._said))
        os.write(self._asks, f"{action}\n".encode())
        pid = int(self._line())
        options = [part for expression in expressions for part in ("-e", expression)]
        tracer = subprocess.Popen(
            [self._strace, "-p", str(pid), "-o", str(self._log), *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert tracer.stderr is not None
        # It says so once it is attached; only then may the child go on.
        said = tracer.stderr.readline()
        os.kill(pid, signal.SIGCONT)
        code = int(self._line())
        tracer.stderr.read()
        tracer.stderr.close()
        tracer.wait()
        assert "attached" in said, said
        hit = ("inject=" in "".join(expressions)) and code >= 0
        assert not hit or "(INJECTED)" in self._log.read_text(errors="replace"), expressions
        return code

    def _line(self) -> str:
        line = self._lines.readline()
        assert line, "the server is gone"
        return line


def _serve(install: mini.Mini, asked: TextIO, answered: TextIO, said: mmap.mmap) -> None:
    # What is imported on first use would shift the counts of the first child.
    install.plan()
    # Every live process would be one more file to open, and they come and go.
    nowhere = install.root / "no-processes"
    vars(preflight)["processes_of"] = partial(processes_of, proc=nowhere)

    def say(line: object) -> None:
        answered.write(f"{line}\n")
        answered.flush()

    say("ready")
    for line in asked:
        pid = users.forked(partial(_end, install, line.strip(), said))
        os.waitpid(pid, os.WUNTRACED)
        say(pid)
        _, ended = os.waitpid(pid, 0)
        say(os.waitstatus_to_exitcode(ended))


def _end(install: mini.Mini, action: str, said: mmap.mmap) -> None:
    os._exit(_child(install, action, said))


def _child(install: mini.Mini, action: str, said: mmap.mmap) -> int:
    # Where only a parent may trace, this allows it to anybody.
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    if action.startswith("bundle"):
        return _bundle(install, action)
    try:
        {"apply": perform.apply, "revert": perform.revert, "status": perform.status}[action](
            install.options
        )
    except DdtreeError as error:
        text = error.found.encode()
        said[: len(text)] = text
        return error.exit_code
    # Anything else would be a traceback for an operator.
    except BaseException:  # noqa: BLE001
        return SURPRISE
    return 0


def _bundle(install: mini.Mini, action: str) -> int:
    # What is said would go where the server says its lines.
    sys.stdout = sys.stderr = io.StringIO()
    words = [str(install.site), *(["--revert"] if action.endswith("revert") else [])]
    try:
        return offline.main(install.root / "bundle", words, "")
    # A traceback for an operator.
    except BaseException:  # noqa: BLE001
        return SURPRISE
