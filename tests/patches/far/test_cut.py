"""A link that breaks at any message of a change leaves the old or the new, and nothing between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ConflictError, DdtreeError
from ddtree.analyzers.remote.ask import Opener
from ddtree.analyzers.transports import Transport
from ddtree.analyzers.transports.address import SshAddress
from ddtree.analyzers.transports.open import open_transport
from ddtree.patches.errors import RecoveryPending
from ddtree.patches.far import remote
from ddtree.patches.perform import Applied, Outcome, Reverted
from ddtree.patches.status import State
from tests.analyzers.transports import near, proxy, sshd
from tests.analyzers.transports.sshd import Sshd

from . import box
from .box import Box

SIDES = ("server", "client")


@dataclass
class Scissors:
    """Cuts the link at one message of one side, once it is sharp.

    Args:
        side: whose messages are counted.
        message: the one that does not arrive.
        count: how many came so far.
    """

    side: str = "server"
    message: int = 0
    sharp: bool = False
    count: int = 0

    def of(self, side: str) -> proxy.Meddle:
        """What the proxy asks about the messages of a side."""

        def meddle(data: bytes, _: int) -> bytes | None:
            if not self.sharp or side != self.side:
                return data
            self.count += 1
            return None if self.count >= self.message else data

        return meddle


@dataclass
class Link:
    """An install behind a real server, and scissors on the way."""

    box: Box
    scissors: Scissors

    def run(self, action: str) -> Outcome:
        """A change whose plan is made over a whole link, and which is then cut."""

        def sharpen(_: object) -> None:
            self.scissors.sharp, self.scissors.count = True, 0

        change = remote.apply if action == "apply" else remote.revert
        try:
            return change(self.box.far, replace(self.box.options, agree=sharpen))
        finally:
            self.scissors.sharp = False

    def settled(self) -> State:
        """What `--status` says, once nothing is at work there any more."""
        until = time.monotonic() + 60.0
        while True:
            try:
                return self.box.status().state
            except ConflictError as busy:
                if "another ddtree is changing" not in busy.found or time.monotonic() > until:
                    raise
            time.sleep(0.1)

    def brought(self, state: State) -> None:
        """Bring the install into a state, over a whole link."""
        if self.settled() != state:
            change = remote.revert if state == State.STOCK else remote.apply
            change(self.box.far, self.box.options)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Link]:
    """One for all cuts."""
    root = tmp_path_factory.mktemp("far")
    options = [f"SetEnv DDTREE_STATE={root / 'state'}"]
    scissors = Scissors()
    with (
        sshd.serve(root / "server", options=options) as server,
        proxy.between(server.port, scissors.of("server"), scissors.of("client")) as port,
    ):
        yield Link(box.make(root, _opener(root, server, port)), scissors)


def _opener(root: Path, server: Sshd, port: int) -> Opener:
    known = f"[127.0.0.1]:{port} {sshd.public(server.host_key)}\n"
    settings = near.settings(root / "near", server, known=known, lines=[f"Port {port}"])

    @contextmanager
    def opener() -> Iterator[Transport]:
        with open_transport(SshAddress("box"), settings) as transport:
            yield transport

    return opener


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("action", ["apply", "revert"])
def test_a_cut_leaves_the_old_or_the_new(link: Link, action: str, side: str) -> None:
    """At every message of the change, until none is left to cut."""
    start, end = (State.STOCK, State.APPLIED)[:: 1 if action == "apply" else -1]
    link.brought(end)
    snapshots = {end: link.box.snapshot()}
    link.brought(start)
    snapshots[start] = link.box.snapshot()
    reached = set()
    for message in range(1, 200):
        link.scissors.side, link.scissors.message = side, message
        try:
            outcome = link.run(action)
        except DdtreeError as error:
            assert isinstance(error, RecoveryPending), error
            assert "--status" in error.hint
        else:
            assert isinstance(outcome, Applied | Reverted)
            if link.scissors.count < message:
                break
        found = link.settled()
        assert link.box.snapshot() == snapshots[found]
        reached.add(found)
        link.brought(start)
    else:
        raise AssertionError("there was always one more message")
    assert message > 8
    # Some cuts come too early for anything to happen, and some when all is done.
    assert reached == ({start, end} if side == "server" else reached | {start})
