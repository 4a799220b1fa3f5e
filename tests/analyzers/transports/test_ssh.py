"""Commands behind a real server: streams, quoting, exit codes, in both ways to get there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtree.analyzers.errors import UnreachableError
from ddtree.analyzers.transports import Transport
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import open_transport

from . import near
from .sshd import PLAIN, Sshd, needs_accounts, private, serve

BOX = SshAddress("box")
BOTH = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
WORDS = ["a b", "", "'", '"', "$HOME", "`id`", "\\", "*", "a\nb", "ünï", ";", "-x", "!"]


@pytest.fixture(params=["paramiko", "openssh"])
def transport(request: pytest.FixtureRequest, tmp_path: Path, server: Sshd) -> Iterator[Transport]:
    """The server, reached in both ways."""
    with open_transport(BOX, near.settings(tmp_path, server, transport=request.param)) as opened:
        yield opened


@pytest.fixture
def key(server: Sshd) -> Path:
    """The key that opens a server."""
    return server.key


def test_a_command_by_key(transport: Transport) -> None:
    """stdin, stdout, stderr and the exit code, one after another over one connection."""
    code = "import sys; print(sys.stdin.read(3)); sys.stderr.write('b\\nc'); sys.exit(7)"
    for _ in range(2):
        running = transport.start(near.python(code), b"abc")
        assert near.output(running) == b"abc\n"
        assert running.close() == 7
        assert running.log() == ("b", "c")


def test_words_arrive_as_they_are(transport: Transport) -> None:
    """Whatever a shell would make of them."""
    code = "import sys; print(ascii(sys.argv[1:]))"
    running = transport.start([*near.python(code), *WORDS], b"")
    assert near.output(running).decode() == ascii(WORDS) + "\n"
    assert running.close() == 0


def test_both_streams_full(transport: Transport) -> None:
    """Neither holds the other up, while stdin is still being sent."""
    code = (
        "import sys; e = sys.stderr.buffer; o = sys.stdout.buffer\n"
        "for _ in range(64): e.write(b'e' * 65535 + b'\\n'); o.write(b'o' * 65536)\n"
        "o.flush(); e.flush(); o.write(b'%d' % len(sys.stdin.buffer.read(5000000)))"
    )
    running = transport.start(near.python(code), b"i" * 5000000)
    found = near.output(running)
    assert found == b"o" * 64 * 65536 + b"5000000"
    assert running.close() == 0
    assert set(running.log()) == {"e" * 65535}


def test_every_byte_passes(transport: Transport) -> None:
    """In both directions, whatever a terminal would make of them."""
    data = bytes(range(256)) * 1000
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read(256000))"
    running = transport.start(near.python(code), data)
    assert near.output(running) == data
    assert running.close() == 0


def test_silence_is_a_timeout(transport: Transport) -> None:
    """What comes later is not lost."""
    code = "import sys; sys.stdin.read(); print('late')"
    running = transport.start(near.python(code), b"")
    for timeout in (0.0, 0.05):
        with pytest.raises(TimeoutError):
            running.chunk(timeout)
    running.close()


def test_an_early_end_of_stdout_is_not_the_end(transport: Transport) -> None:
    """The exit code is that of the command, however long it goes on."""
    code = "import os, sys; os.close(1); sys.stdin.read(); os._exit(5)"
    running = transport.start(near.python(code), b"")
    assert running.close() == 5


def test_who_stops_reading_holds_nobody_up(transport: Transport) -> None:
    """What is left of the output is thrown away when a command is closed."""
    code = "import sys; sys.stdout.write('x' * 20_000_000); sys.exit(3)"
    running = transport.start(near.python(code), b"")
    assert running.chunk(60.0)
    assert running.close() == 3


def test_closing_ends_stdin(transport: Transport) -> None:
    """That is how a command over there hears that nobody listens any more."""
    code = "import sys; print('x', flush=True); sys.stdin.read(); sys.exit(4)"
    running = transport.start(near.python(code), b"")
    assert running.chunk(60.0) == b"x\n"
    assert running.close() == 4
    assert running.close() == 4


def test_a_command_that_is_not_there(transport: Transport) -> None:
    """The shell over there says so, and the caller decides what to try next."""
    running = transport.start(["/nowhere/python"], b"")
    assert near.output(running) == b""
    assert running.close() == 127
    assert "No such file" in running.log()[-1]


def test_a_command_that_does_not_want_to_end(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed with its group, where the server takes signals: for any account but root."""
    monkeypatch.setattr("ddtree.analyzers.transports.ssh.running.PATIENCE_SECONDS", 0.5)
    listed = tmp_path / "server" / "authorized"
    # The account cannot read the folders of the tests.
    options = [f"AuthorizedKeysCommand /bin/cat {listed}", "AuthorizedKeysCommandUser root"]
    stubborn = "trap '' HUP TERM; sleep 600 & echo $$ $!; while :; do sleep 1; done"
    with serve(tmp_path / "server", key=key, options=options if private() else ()) as plain:
        lines = [f"User {PLAIN}"] if private() else []
        with open_transport(BOX, near.settings(tmp_path / "near", plain, lines=lines)) as opened:
            running = opened.start(["sh", "-c", stubborn], b"")
            first = running.chunk(60.0)
            assert first
            assert running.close() != 0
            assert gone(list(map(int, first.split())))


def gone(pids: list[int], seconds: float = 15.0) -> bool:
    """Whether these processes end."""
    until = time.monotonic() + seconds
    while any(Path(f"/proc/{pid}/cmdline").exists() and _lives(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@BOTH
def test_a_noisy_rc_file(tmp_path: Path, key: Path, transport: str) -> None:
    """What it prints comes first, and nothing of the command is lost."""
    needs_accounts()
    rc = "echo welcome; echo 'to the box' >&2; stty sane; printf 'no end'\n"
    with serve(tmp_path / "noisy", key=key, rc=rc) as noisy:
        settings = near.settings(tmp_path / "near", noisy, transport=transport)
        with open_transport(BOX, settings) as opened:
            running = opened.start(near.python("print(1)"), b"")
            assert near.output(running) == b"welcome\nno end1\n"
            assert running.close() == 0
            assert "to the box" in running.log()


@BOTH
def test_an_account_that_may_not_run_commands(tmp_path: Path, key: Path, transport: str) -> None:
    """What it says instead is all there is."""
    options = ["ForceCommand echo this account is closed >&2; exit 1"]
    with serve(tmp_path / "closed", key=key, options=options) as closed:
        settings = near.settings(tmp_path / "near", closed, transport=transport)
        with open_transport(BOX, settings) as opened:
            running = opened.start(near.python("print(1)"), b"")
            assert near.output(running) == b""
            assert running.close() == 1
            assert running.log()[-1] == "this account is closed"


@BOTH
def test_a_server_that_gives_no_sessions(tmp_path: Path, key: Path, transport: str) -> None:
    with serve(tmp_path / "none", key=key, options=["MaxSessions 0"]) as none:
        settings = near.settings(tmp_path / "near", none, transport=transport)
        with open_transport(BOX, settings) as opened, pytest.raises(UnreachableError):
            running = opened.start(near.python("print(1)"), b"")
            try:
                near.output(running)
            finally:
                running.close()


@BOTH
def test_as_root(tmp_path: Path, server: Sshd, transport: str) -> None:
    """Through `sudo -n`, whose refusal is said."""
    needs_accounts()
    settings = near.settings(tmp_path, server, transport=transport, sudo=True)
    sudo = server.home / "bin" / "sudo"
    sudo.parent.mkdir(exist_ok=True)
    (server.home / ".bashrc").write_text(f"PATH={sudo.parent}:$PATH\n")
    with open_transport(BOX, settings) as opened:
        sudo.write_text('#!/bin/sh\n[ "$1 $2" = "-n --" ] || exit 9\nshift 2\nexec "$@"\n')
        sudo.chmod(0o755)
        assert near.answer(opened, "import sys; print(sys.stdin.read(2))", b"ab") == "ab\n"
        sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
        running = opened.start(near.python("print(1)"), b"")
        with pytest.raises(UnreachableError, match="sudo refuses on the target: a password is"):
            near.output(running)
        assert running.close() == 1
        sudo.unlink()
        (server.home / ".bashrc").write_text("PATH=/nowhere\n")
        running = opened.start(near.python("print(1)"), b"")
        with pytest.raises(UnreachableError, match=r"sudo refuses on the target: .*not found"):
            near.output(running)
    (server.home / ".bashrc").write_text("")
