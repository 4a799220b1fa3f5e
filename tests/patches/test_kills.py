"""A hundred kills each of apply, revert and a bundle, at any time: the next command leaves nothing.

`test_faults.py` ends each at every system call that writes; here the time is random, also between.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.patches import offline, perform, preflight
from ddtree.patches.processes import Processes
from ddtree.patches.status import State

from . import mini, users

commons = users.commons
KILLS = 100
OTHER = {State.STOCK: State.APPLIED, State.APPLIED: State.STOCK}


class Owner:
    """An install and its owner, who does everything to it."""

    def __init__(self, root: Path, user: int) -> None:
        self.install = mini.make(root)
        self._user = user
        users.given(root, user)
        users.by(lambda: perform.bundle(self.install.options, root / "bundle"), user)

    def bundle(self, *words: str) -> None:
        """Run the bundle's script; it prints what it does."""
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        offline.main(self.install.root / "bundle", [str(self.install.site), *words], "")

    def done(self, action: Callable[[], object]) -> None:
        """Let the owner do it."""
        os.waitpid(self._begun(action), 0)

    def killed(self, action: Callable[[], object], after: float) -> bool:
        """Let the owner do it, but not longer than these seconds; whether it was cut short."""
        pid = self._begun(action)
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
        _, ended = os.waitpid(pid, 0)
        return os.WIFSIGNALED(ended)

    def _begun(self, action: Callable[[], object]) -> int:
        def child() -> None:
            users.become(self._user)
            action()

        return users.forked(child)

    def state(self) -> State:
        """What a status says, which recovers first."""
        return users.by(self.install.status, self._user).state

    def all(self) -> dict[str, mini.Facts]:
        """Every path with mode, owner, link and byte: of the install, the state and the rest."""
        return mini.snapshot(self.install.root)


@pytest.mark.extended
@pytest.mark.parametrize("user", [0, users.USER])
@pytest.mark.parametrize("action", ["apply", "revert", "bundle", "bundle back"])
def test_random_kills_leave_nothing(
    commons: Path, monkeypatch: pytest.MonkeyPatch, action: str, user: int
) -> None:
    root = commons / "theirs"
    monkeypatch.setenv("DDTREE_STATE", str(root / "state"))
    # Of those that come and go here, none may stop a command.
    monkeypatch.setattr(preflight, "processes_of", lambda _: Processes((), 0))
    owner = Owner(root, user)
    install = owner.install
    actions: dict[str, tuple[State, Callable[[], object], Callable[[], object]]] = {
        "apply": (State.STOCK, install.apply, install.revert),
        "revert": (State.APPLIED, install.revert, install.apply),
        "bundle": (State.STOCK, owner.bundle, lambda: owner.bundle("--revert")),
        "bundle back": (State.APPLIED, lambda: owner.bundle("--revert"), owner.bundle),
    }
    start, change, back = actions[action]
    if start == State.APPLIED:
        owner.done(back)
    else:
        owner.done(change)
        owner.done(back)
    known = {start: owner.all()}
    started = time.monotonic()
    owner.done(change)
    whole = time.monotonic() - started
    known[OTHER[start]] = owner.all()
    owner.done(back)

    source = random.Random(action)
    cut, ends = 0, set()
    for _ in range(10 * KILLS):
        if cut == KILLS:
            break
        assert owner.all() == known[start]
        cut += owner.killed(change, source.uniform(0, whole))
        # The next command is one of those that may come, and finishes or takes back.
        if source.random() < 0.3:
            owner.done(back)
        found = owner.state()
        assert owner.all() == known[found]
        ends.add(found)
        if found != start:
            owner.done(back)
    assert cut == KILLS
    assert start in ends


@pytest.mark.extended
@pytest.mark.parametrize("action", ["apply", "bundle"])
def test_a_revert_leaves_nothing_although_the_journal_is_gone(
    commons: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """As after a kill in a container whose home is thrown away."""
    root = commons / "theirs"
    monkeypatch.setenv("DDTREE_STATE", str(root / "state"))
    monkeypatch.setattr(preflight, "processes_of", lambda _: Processes((), 0))
    owner = Owner(root, users.USER)
    before = owner.all()
    change = owner.install.apply if action == "apply" else owner.bundle
    started = time.monotonic()
    owner.done(change)
    whole = time.monotonic() - started
    source = random.Random(action)
    found = set()
    for _ in range(KILLS):
        owner.done(owner.install.revert)
        shutil.rmtree(root / "state", ignore_errors=True)
        assert owner.all() == before
        owner.killed(change, source.uniform(0, whole))
        shutil.rmtree(root / "state", ignore_errors=True)
        found.add(owner.state())
    assert found >= {State.STOCK, State.REMNANTS}
