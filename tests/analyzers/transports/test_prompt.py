"""Questions at the terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_SECONDS = 30.0
_ASK = """
import os, sys, threading, time
os.open(sys.argv[1], os.O_RDWR)
from ddtree.analyzers.transports.ssh.prompt import ask
"""
_ALONE = "print(ask('name \\x1b[2J\\n?', echo=True).word, ask('word?').word)"
_BESIDE = """
threading.Thread(target=ask, args=("word?",), daemon=True).start()
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@contextmanager
def terminal() -> Iterator[tuple[int, str]]:
    """A terminal: the end of the person, and the name of the other one."""
    person, program = os.openpty()
    try:
        yield person, os.ttyname(program)
    finally:
        os.close(person)
        os.close(program)


def start(code: str, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _ASK + code, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def echoes(person: int) -> bool:
    return bool(termios.tcgetattr(person)[3] & termios.ECHO)


def wait_for(screen: int, words: bytes) -> bytes:
    """What stands on the screen when these words do."""
    found = b""
    until = time.monotonic() + _SECONDS
    while words not in found:
        assert time.monotonic() < until, found
        found += os.read(screen, 4096)
    return found


def test_words_and_secrets() -> None:
    """The terminal shows the one, and not the other; a question does nothing to it."""
    with terminal() as (person, name), start(_ALONE, name) as process:
        asked = wait_for(person, b"name")
        os.write(person, b"me\n")
        shown = asked + wait_for(person, b"word?")
        os.write(person, b"hunter2\n")
        out, _ = process.communicate(timeout=_SECONDS)
        assert out == b"me hunter2\n"
        assert b"me\r\n" in shown
        assert b"\x1b" not in shown


@pytest.mark.parametrize("code", [_ALONE.replace("echo=True", "echo=False"), _BESIDE])
def test_an_interrupted_question_leaves_a_terminal_that_echoes(code: str) -> None:
    """Whichever thread has asked."""
    with terminal() as (person, name), start(code, name) as process:
        wait_for(person, b"?")
        assert not echoes(person)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_SECONDS)
        assert process.returncode != 0
        assert echoes(person)
