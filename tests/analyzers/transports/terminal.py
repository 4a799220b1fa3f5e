"""A login with a person at a terminal of its own, or with nobody there."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ddtree.analyzers.transports.open import Settings

_SECONDS = 60.0
# A leader of a session takes the first terminal that it opens for its own.
_LOGIN = """
import logging, os, sys
from pathlib import Path
if sys.argv[1]:
    os.open(sys.argv[1], os.O_RDWR)
logging.basicConfig(filename=sys.argv[5], level=logging.DEBUG)
from ddtree.analyzers.errors import DdtreeError
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import Settings, open_transport
from ddtree.cli.render.error import as_text
from tests.analyzers.transports import near
settings = Settings(transport=sys.argv[2], ssh_config=Path(sys.argv[3]), timeout=float(sys.argv[4]))
try:
    with open_transport(SshAddress("box"), settings) as opened:
        print(near.answer(opened, "print('in')"), end="")
except DdtreeError as failure:
    sys.stderr.write(as_text(failure))
    sys.exit(failure.exit_code)
"""


@dataclass(frozen=True)
class Done:
    """How a login went.

    Args:
        code: the exit code, 0 when it worked.
        said: stdout and stderr.
        screen: what the person saw.
        log: what was logged, at the lowest level.
    """

    code: int
    said: str
    screen: str
    log: str


def login(
    settings: Settings, answers: Sequence[tuple[str, str]] = (), *, terminal: bool = True
) -> Done:
    """Log in to `box` in a process of its own.

    Args:
        settings: with a configuration.
        answers: questions, or parts of them, and what is typed then, in this order.
        terminal: whether there is one.
    """
    master, slave = os.openpty()
    assert settings.ssh_config
    log = settings.ssh_config.with_name("log")
    command = [sys.executable, "-W", "error", "-c", _LOGIN, os.ttyname(slave) if terminal else ""]
    command += [settings.transport, str(settings.ssh_config), str(settings.timeout or 60.0)]
    path = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    process = subprocess.Popen(
        [*command, str(log)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", "DDTREE_DEBUG": "1"},
    )
    try:
        screen = _typed(process, master, answers)
        said, _ = process.communicate(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)
    return Done(process.returncode, said.decode("utf-8", "replace"), screen, log.read_text())


def _typed(
    process: subprocess.Popen[bytes], master: int, answers: Sequence[tuple[str, str]]
) -> str:
    """Type each answer when its question stands on the screen; what stands there in the end."""
    left, screen, seen = list(answers), "", 0
    until = time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < until:
        screen += _shown(master, 0.1)
        # What is typed before the echo stops would be seen, and then forgotten.
        quiet = not termios.tcgetattr(master)[3] & termios.ECHO
        if left and quiet and (at := screen.find(left[0][0], seen)) >= 0:
            seen = at + len(left[0][0])
            os.write(master, f"{left.pop(0)[1]}\n".encode())
    return screen + _shown(master, 0.1)


def _shown(master: int, seconds: float) -> str:
    found = b""
    while select.select([master], [], [], seconds if not found else 0.0)[0]:
        with contextlib.suppress(OSError):
            if more := os.read(master, 4096):
                found += more
                continue
        break
    return found.decode("utf-8", "replace")
