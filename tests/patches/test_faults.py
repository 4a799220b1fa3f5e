"""Promise 3: whatever happens at whichever system call, all or nothing, and the next command helps.

Promise 5 is proved with the same tool: a second apply makes no mutating system call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from ddtree.patches import perform
from ddtree.patches.status import State
from ddtree.patches.way import Way

from . import faults, mini, users
from .faults import Server

Result = TypeVar("Result")


class By(Protocol):
    """Runs something, as some user."""

    def __call__(self, function: Callable[[], Result]) -> Result:
        """What it returns."""


# One error at one call, and a machine on which the call never works again.
FAULTS = {
    "killed": ("signal=KILL", ""),
    "full": ("error=ENOSPC", ""),
    "broken": ("error=EIO", ""),
    "full for good": ("error=ENOSPC", "+"),
    "broken for good": ("error=EIO", "+"),
}
ENDS = {"killed": {-9}, "full": {0, 5, 6}, "broken": {0, 5, 6}}
STARTS = {
    "apply": State.STOCK,
    "revert": State.APPLIED,
    "bundle apply": State.STOCK,
    "bundle revert": State.APPLIED,
}
ENDS_IN = {"bundle apply": State.APPLIED, "bundle revert": State.STOCK}


commons = users.commons


@pytest.fixture
def server(install: mini.Mini) -> Iterator[Server]:
    running = Server(install)
    yield running
    running.close()


@pytest.fixture
def theirs(commons: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[mini.Mini, Server]]:
    """An install of another user's, and a server that is that user."""
    install = mini.make(commons / "theirs")
    users.given(install.root)
    monkeypatch.setenv("DDTREE_STATE", str(install.state))
    running = Server(install, users.USER)
    yield install, running
    running.close()


def own(function: Callable[[], Result]) -> Result:
    """What a function does, by this user."""
    return function()


class States:
    """The two complete states of an install, to be told apart and to be gone back to.

    Args:
        by: runs what changes it, as its owner.
    """

    def __init__(self, install: mini.Mini, by: By = own) -> None:
        self._install = install
        self._by = by
        self._known = {State.STOCK: mini.snapshot(install.site)}
        by(install.apply)
        self._known[State.APPLIED] = mini.snapshot(install.site)

    def checked(self) -> State:
        """The state after a next command; every byte has to agree with what it says."""
        status = self._by(self._install.status)
        assert mini.snapshot(self._install.site) == self._known[status.state], status
        if status.state == State.STOCK:
            assert not [path for path in self._install.state.rglob("*") if path.is_file()]
        return status.state

    def exactly(self, wanted: State) -> bool:
        """Whether the install is in that state, and nothing is left to be recovered."""
        same = mini.snapshot(self._install.site) == self._known[wanted]
        kept = [path.name for path in self._install.state.rglob("*.json")]
        return same and len(kept) == (wanted == State.APPLIED)

    def contradicts(self, said: str) -> bool:
        """Whether a sentence says that something is live which is not, before any next command."""
        found = mini.snapshot(self._install.site)
        live = {path: facts for path, facts in found.items() if ".ddtree-" not in path}
        whole = live == self._known[State.APPLIED]
        # Python finds the runtime as long as its folder has the name.
        stock = not any(path.startswith("ddtree_runtime/") for path in live)
        # vLLM finds a plug-in by its metadata.
        stock |= self._install.way == Way.PLUGIN and not any("entry_points" in one for one in live)
        patched = any(live[file] != self._known[State.STOCK][file] for file in mini.EDITED)
        claims = {
            "the patch is whole and live": whole,
            "vLLM runs unpatched": stock and not patched,
            "vLLM runs as if it were not patched": stock and patched,
            "every byte is as it was before": live == self._known[State.STOCK],
        }
        return any(not true for claim, true in claims.items() if claim in said)

    def go_to(self, wanted: State) -> None:
        """Bring the install into a state."""
        if self.checked() != wanted:
            self._by(self._install.apply if wanted == State.APPLIED else self._install.revert)
            assert self.checked() == wanted


def stale(install: mini.Mini) -> Path:
    """Bytecode of an edited file, as an interpreter may leave it at any time."""
    path = (install.site / mini.CONFIG).parent / "__pycache__" / "vllm.cpython-311.pyc"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"stale")
    return path


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("action", ["apply", "revert"])
def test_every_mutating_call_may_fail(
    install: mini.Mini, server: Server, action: str, fault: str
) -> None:
    os.setxattr(install.site / mini.CONFIG, "user.note", b"kept")
    states = States(install)
    states.go_to(STARTS[action])
    stale(install)
    points = server.points(action)
    assert {"rename", "fsync", "unlink", "fsetxattr"} <= {point.name for point in points}
    hit(install, states, server, points, action, fault)


# The others take as long again.
OTHERS = ("killed", "broken for good")


@pytest.mark.parametrize(
    "fault",
    [one if one in OTHERS else pytest.param(one, marks=pytest.mark.extended) for one in FAULTS],
)
@pytest.mark.parametrize("action", ["apply", "revert"])
def test_every_mutating_call_of_a_user_who_is_not_root_may_fail(
    theirs: tuple[mini.Mini, Server], action: str, fault: str
) -> None:
    install, server = theirs
    states = States(install, users.by)
    states.go_to(STARTS[action])
    users.by(lambda: stale(install))
    points = server.points(action)
    assert "fchown" not in {point.name for point in points}
    hit(install, states, server, points, action, fault, users.by)
    # Whoever changes it, it stays theirs.
    assert {path.lstat().st_uid for path in install.site.rglob("*")} == {users.USER}


@pytest.mark.parametrize(
    "fault",
    [one if one in OTHERS else pytest.param(one, marks=pytest.mark.extended) for one in FAULTS],
)
@pytest.mark.parametrize("action", STARTS)
def test_every_mutating_call_of_a_plug_in_may_fail(
    install: mini.Mini, action: str, fault: str
) -> None:
    install = replace(install, way=Way.PLUGIN)
    if action.startswith("bundle"):
        perform.bundle(install.options, install.root / "bundle")
    server = Server(install)
    states = States(install)
    states.go_to(STARTS[action])
    hit(install, states, server, server.points(action), action, fault)
    server.close()


def hit(
    install: mini.Mini,
    states: States,
    server: Server,
    points: list[faults.Point],
    action: str,
    fault: str,
    by: By = own,
) -> None:
    """Let every one of these calls fail, one action at a time."""
    assert len(points) > 30
    seen = set()
    for point in points:
        states.go_to(STARTS[action])
        bytecode = by(lambda: stale(install))
        what, more = FAULTS[fault]
        code = server.run(
            action,
            f"trace={point.name}",
            f"inject={point.name}:{what}:when={point.ordinal}{more}",
        )
        assert code in ENDS[fault.partition(" ")[0]], (point, code)
        assert not states.contradicts(server.said), (point, server.said)
        # How things stand is said whenever something is left to do.
        told = re.search("live|vLLM runs", server.said) or action.startswith("bundle")
        assert code != 6 or told, (point, server.said)
        # A command that says that everything is as before is right without any recovery.
        assert code != 5 or states.exactly(STARTS[action]), point
        # One that says that it went through has gone through.
        after = states.checked()
        assert after != STARTS[action] or code != 0, point
        # A plug-in's hooks need none of it to be made anew.
        assert after == STARTS[action] or bytecode.exists() is (install.way == Way.PLUGIN)
        seen.add(code)
    assert fault == "killed" or seen & {5, 6}


def test_a_second_apply_changes_nothing(install: mini.Mini, server: Server) -> None:
    install.apply()
    before = mini.snapshot(install.site)

    assert server.points("apply") == []
    assert server.points("status") == []
    assert mini.snapshot(install.site) == before


def test_the_new_content_comes_first_and_the_last_rename_activates(
    install: mini.Mini, server: Server, tmp_path: Path
) -> None:
    site = str(tmp_path / "site-packages")
    calls = [point.text for point in server.points("apply")]
    renames = [index for index, text in enumerate(calls) if text.startswith("rename")]
    inside = [index for index in renames if f'"{site}' in calls[index]]
    created = [
        index
        for index, text in enumerate(calls)
        if text.startswith(("openat", "mkdir", "write")) and site in text
    ]

    assert max(created) < min(inside)
    assert f'"{site}/ddtree_runtime")' in calls[inside[-1]]
    assert [i for i in renames if i < min(inside)], "the journal comes before everything else"
    # Between the last write and the first rename, everything is on the disk.
    assert any(text.startswith("fsync") for text in calls[max(created) : min(inside)])


def test_a_crash_in_the_recovery_is_recovered_from(install: mini.Mini, server: Server) -> None:
    states = States(install)
    states.go_to(State.STOCK)
    (last,) = [point for point in server.points("apply") if 'ddtree_runtime") = 0' in point.text]
    states.go_to(State.STOCK)
    kill = (f"trace={last.name}", f"inject={last.name}:signal=KILL:when={last.ordinal}")
    assert server.run("apply", *kill) == -9
    points = server.points("status")
    assert len(points) > 10
    for point in points:
        states.go_to(State.STOCK)
        assert server.run("apply", *kill) == -9
        hit = (f"trace={point.name}", f"inject={point.name}:signal=KILL:when={point.ordinal}")
        assert server.run("status", *hit) == -9
        assert states.checked() == State.STOCK


@pytest.mark.parametrize("fault", ["killed", "broken for good"])
@pytest.mark.parametrize("action", ["bundle apply", "bundle revert"])
def test_every_mutating_call_of_a_bundle_may_fail(
    install: mini.Mini, server: Server, action: str, fault: str
) -> None:
    """The same for the script of a bundle; run again, it goes through, and so does its way back."""
    perform.bundle(install.options, install.root / "bundle")
    states = States(install)
    states.go_to(STARTS[action])
    stale(install)
    points = server.points(action)
    hit(install, states, server, points, action, fault)
    if fault != "killed":
        return
    for point in points[::3]:
        states.go_to(STARTS[action])
        kill = f"inject={point.name}:signal=KILL:when={point.ordinal}"
        assert server.run(action, f"trace={point.name}", kill) == -9
        assert server.run(action, "trace=fsync") == 0
        assert states.exactly(ENDS_IN[action]), point


def test_a_bundle_that_is_done_changes_nothing(install: mini.Mini, server: Server) -> None:
    perform.bundle(install.options, install.root / "bundle")

    assert server.points("bundle revert") == []
    assert server.run("bundle apply", "trace=fsync") == 0
    assert server.points("bundle apply") == []
