"""Links that are bad: closed, mute, hung, cut, and hosts that are no ssh servers."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import TargetError, UnreachableError
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import Settings, open_transport

from . import near, proxy
from .sshd import Sshd, free_port, public, serve

BOX = SshAddress("box")
BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
ENDLESS = "import sys\nwhile 1: sys.stdout.write('x' * 10000); sys.stdout.flush()"


@pytest.fixture
def short_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little patience with commands that do not end."""
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.running.PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.running._LAST_SECONDS", 0.5)
    monkeypatch.setattr("ddtree.analyzers.transports.local.PATIENCE_SECONDS", 0.5)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, short_ends: None) -> None:
    """Limits that a test can wait for, where nobody gets in."""
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.connect.BANNER_SECONDS", 1.0)
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.login.AUTH_SECONDS", 1.0)
    monkeypatch.setattr("ddtree.analyzers.transports.openssh.CONNECT_SECONDS", 1)
    monkeypatch.setattr("ddtree.analyzers.transports.openssh.LOGIN_SECONDS", 3.0)


def elsewhere(folder: Path, server: Sshd, port: int, **more: Any) -> Settings:
    """Settings with which `box` is reached through another port."""
    known = f"real {public(server.host_key)}\n"
    lines = [f"Port {port}", "HostKeyAlias real"]
    return near.settings(folder, server, known=known, lines=lines, **more)


def refused(settings: Settings) -> TargetError:
    with pytest.raises(UnreachableError) as failure, open_transport(BOX, settings):
        pass
    assert failure.value.exit_code == 3
    assert failure.value.hint
    return failure.value


@BOTH
def test_nobody_listens(tmp_path: Path, server: Sshd, transport: str) -> None:
    failure = refused(elsewhere(tmp_path, server, free_port(), transport=transport))
    assert "Connection refused" in failure.found


@BOTH
def test_no_such_host(tmp_path: Path, server: Sshd, transport: str) -> None:
    lines = ["HostName nowhere.invalid"]
    failure = refused(near.settings(tmp_path, server, lines=lines, transport=transport))
    assert "nowhere.invalid" in failure.found or "box" in failure.found


@BOTH
@pytest.mark.usefixtures("impatient")
def test_a_mute_server(tmp_path: Path, server: Sshd, transport: str) -> None:
    """It takes the connection, and says nothing."""
    with proxy.listening() as (_, port):
        failure = refused(elsewhere(tmp_path, server, port, transport=transport))
    if transport == "paramiko":
        assert "did not greet as an ssh server within 1 seconds" in failure.found


@BOTH
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-a\r\n",
        b"SSH-2.0-a\r\n" + b"\0" * 100,
        b"SSH-2.0-a\r\n" + b"\xff" * 4096,
        b"SSH-1.5-old\r\n",
        b"SSH-2.0-\x1b[2J\r\n" + b"x" * 5000,
        b"\0" * 100_000,
    ],
)
def test_something_else(tmp_path: Path, server: Sshd, transport: str, words: bytes) -> None:
    """Whatever it says is no reason to wait for long, to crash, or to write to the terminal."""
    with proxy.saying(words) as port:
        failure = refused(elsewhere(tmp_path, server, port, transport=transport))
    assert failure.found.isprintable()


@BOTH
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("at", [21, 500, 1200, 2200, 2500, 2900])
@pytest.mark.parametrize("how", ["cut", "hung"])
def test_a_link_that_breaks_on_the_way_in(
    tmp_path: Path, server: Sshd, transport: str, at: int, how: str
) -> None:
    """At any moment of the greeting and of the login."""
    held = threading.Event()

    def meddle(data: bytes, so_far: int) -> bytes | None:
        if so_far + len(data) <= at:
            return data
        if how == "hung":
            held.wait()
        return None

    with proxy.between(server.port, meddle) as port:
        settings = elsewhere(tmp_path, server, port, transport=transport)
        with pytest.raises(UnreachableError), open_transport(BOX, settings) as opened:
            # Some have let us in by then.
            running = opened.start(near.python("print('x' * 5000)"), b"")
            try:
                near.output(running, 2.0)
            except TimeoutError:
                raise UnreachableError("silent", expected="", hint="") from None
            finally:
                running.close()
        held.set()


@BOTH
@pytest.mark.usefixtures("short_ends")
def test_a_link_that_is_cut_in_mid_reply(tmp_path: Path, server: Sshd, transport: str) -> None:
    """What came until then came; then there is an error, and not an end."""

    def cut(data: bytes, so_far: int) -> bytes | None:
        return data if so_far < 1_000_000 else None

    with proxy.between(server.port, cut) as port:
        settings = elsewhere(tmp_path, server, port, transport=transport)
        with open_transport(BOX, settings) as opened:
            running = opened.start(near.python(ENDLESS), b"")
            assert running.chunk(60.0)
            with pytest.raises(UnreachableError, match="the connection to ssh://box broke"):
                near.output(running)
            assert running.close() == 255
            with pytest.raises(UnreachableError):
                near.answer(opened, "print(1)")


@BOTH
@pytest.mark.usefixtures("short_ends")
def test_a_server_that_is_killed(tmp_path: Path, server: Sshd, transport: str) -> None:
    """The process that serves the connection, in the middle of a command."""
    with serve(tmp_path / "killed", key=server.key) as killed:
        settings = near.settings(tmp_path / "near", killed, transport=transport)
        with open_transport(BOX, settings) as opened:
            running = opened.start(near.python("print(1); import time; time.sleep(600)"), b"")
            for pid in reversed(killed.children()):
                # What serves the connection may take the rest with it.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with pytest.raises(UnreachableError, match="broke"):
                near.output(running)
            assert running.close() == 255


@BOTH
@pytest.mark.usefixtures("short_ends")
def test_a_server_that_stops_in_mid_reply(tmp_path: Path, server: Sshd, transport: str) -> None:
    """It is hung, so that nothing says that it ended: time runs out, here and for the whole run."""
    held = threading.Event()

    def hang(data: bytes, so_far: int) -> bytes | None:
        if so_far > 1_000_000:
            held.wait()
            return None
        return data

    with proxy.between(server.port, hang) as port:
        settings = elsewhere(tmp_path, server, port, transport=transport, timeout=20.0)
        with open_transport(BOX, settings) as opened:
            running = opened.start(near.python(ENDLESS), b"")
            with pytest.raises(TimeoutError):
                near.output(running, 0.5)
            with pytest.raises(UnreachableError, match="ssh://box was not done after 20 seconds"):
                near.output(running)
            running.close()
            with pytest.raises(UnreachableError):
                opened.start(near.python("print(1)"), b"")
            held.set()


@pytest.mark.usefixtures("short_ends")
def test_a_server_that_starts_nothing(
    tmp_path: Path, server: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It let us in, and then it hung."""
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.transport.EXEC_SECONDS", 1.0)
    held = threading.Event()
    now = threading.Event()

    def hang(data: bytes, _: int) -> bytes | None:
        if now.is_set():
            held.wait()
            return None
        return data

    with proxy.between(server.port, hang) as port:
        settings = elsewhere(tmp_path, server, port)
        with open_transport(BOX, settings) as opened:
            now.set()
            with pytest.raises(UnreachableError, match="did not start a command within 1 seconds"):
                opened.start(near.python("print(1)"), b"")
            held.set()


@BOTH
def test_the_time_of_the_whole_run(tmp_path: Path, server: Sshd, transport: str) -> None:
    """It includes the way there."""
    with proxy.listening() as (_, port):
        settings = elsewhere(tmp_path, server, port, transport=transport, timeout=0.5)
        refused(settings)
