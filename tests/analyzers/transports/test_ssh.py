"""Commands behind a real server: streams, quoting, exit codes, in both ways to get there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtree.analyzers.transports import Transport
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import open_transport

from . import near
from .sshd import Sshd

BOX = SshAddress("box")
WORDS = ["a b", "", "'", '"', "$HOME", "`id`", "\\", "*", "a\nb", "ünï", ";", "-x", "!"]


@pytest.fixture(params=["paramiko", "openssh"])
def transport(request: pytest.FixtureRequest, tmp_path: Path, server: Sshd) -> Iterator[Transport]:
    """The server, reached in both ways."""
    with open_transport(BOX, near.settings(tmp_path, server, transport=request.param)) as opened:
        yield opened


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
