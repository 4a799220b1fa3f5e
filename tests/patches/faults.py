"""Run one command and hit one of its mutating system calls, with strace's fault injection.

A server process has everything imported and forks one child per command, so that a run takes a
tenth of a second. The child stops itself until strace is attached to it.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ddtree.analyzers.errors import DdtreeError
from ddtree.patches import offline, perform, preflight
from ddtree.patches.processes import processes_of

from .. import wheels
from . import mini

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
    """A process that runs `perform` functions in forked children."""

    def __init__(self, install: mini.Mini) -> None:
        strace = shutil.which("strace")
        if strace is None:
            wheels.unavailable("strace is missing; install the package strace")
        self._strace = strace
        self._log = install.root / "strace.log"
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-m", __name__, str(install.root), str(install.site)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"DDTREE_STATE": str(install.state), "PYTHONHASHSEED": "0"},
        )
        assert self._line() == "ready\n"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

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
        assert self._process.stdin is not None
        self._process.stdin.write(f"{action}\n")
        self._process.stdin.flush()
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
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server is gone"
        return line


def _serve(root: Path, site: Path) -> None:
    install = mini.Mini(root, site)
    # What is imported on first use would shift the counts of the first child.
    install.plan()
    # Every live process would be one more file to open, and they come and go.
    vars(preflight)["processes_of"] = partial(processes_of, proc=root / "no-processes")
    _say("ready")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_child(install, line.strip()))
        os.waitpid(pid, os.WUNTRACED)
        _say(pid)
        _, ended = os.waitpid(pid, 0)
        _say(os.waitstatus_to_exitcode(ended))


def _say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _child(install: mini.Mini, action: str) -> int:
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


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), Path(sys.argv[2]))
