"""Status and plan beside another ddtree: what it is half-way through is no state of an install."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ddtree.analyzers.errors import ConflictError
from ddtree.patches import apply as engine
from ddtree.patches import perform, status, undo
from ddtree.patches.errors import RecoveryPending
from ddtree.patches.status import State, Status
from ddtree.patches.verify.precondition import ready

from . import mini, users

# What another process does to the install.
AFTER = {"apply": State.APPLIED, "revert": State.STOCK}


@pytest.fixture(params=AFTER)
def action(request: pytest.FixtureRequest, install: mini.Mini) -> str:
    """What another process will do, and the install is ready for it."""
    if request.param == "revert":
        mini.applied(install)
    return str(request.param)


def whole(install: mini.Mini, action: str) -> None:
    """Another process does all of it."""
    pid = users.forked(getattr(install, action))
    os.waitpid(pid, 0)


def after(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, meanwhile: Callable[[], None]
) -> None:
    """Let something happen once, right after a function was called for the first time."""
    real = getattr(module, name)
    waiting = [meanwhile]

    def called(*args: Any, **named: Any) -> Any:
        found = real(*args, **named)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(module, name, called)


# Between these reads of a status.
READS = ((status, "journal_of"), (status, "_files"), (status, "_unreadable"), (status, "leftovers"))


@pytest.mark.parametrize(("module", "name"), READS, ids=[name for _, name in READS])
def test_a_status_is_of_before_or_after(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch, action: str, module: Any, name: str
) -> None:
    before = install.status().state
    after(monkeypatch, module, name, lambda: whole(install, action))
    found = install.status()
    assert found.state in (before, AFTER[action])
    assert (found.foreign, found.leftovers, found.repair) == ((), (), ())
    assert install.status().state == AFTER[action]


@pytest.mark.parametrize("command", [perform.plan, perform.apply])
def test_a_plan_is_of_before_or_after(
    install: mini.Mini,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    command: Callable[[perform.Options], perform.Outcome],
) -> None:
    after(monkeypatch, perform, "status_of", lambda: whole(install, action))
    found = command(install.options)
    # Before or after, it was patched.
    assert isinstance(found, Status)
    assert found.state == State.APPLIED
    assert install.status().state == AFTER[action]


def test_what_is_verified_is_looked_at_again(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid = install.options.laid()
    after(monkeypatch, status, "journal_of", lambda: whole(install, "apply"))
    with ready(str(install.site), Path("/somewhere/python"), laid) as found:
        assert found.status.state == State.APPLIED


@pytest.fixture
def halfway(install: mini.Mini, action: str) -> int:
    """The number of a process that has begun a change, and stopped in the middle."""

    def child() -> None:
        module, name = (engine, "check") if action == "apply" else (undo, "_set_aside")
        vars(module)[name] = lambda *_, **__: os.kill(os.getpid(), signal.SIGSTOP)
        getattr(install, action)()

    pid = users.forked(child)
    _, how = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(how)
    return pid


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("command", [perform.plan, perform.status, perform.apply, perform.revert])
def test_a_change_that_is_being_made_is_no_finding(
    install: mini.Mini,
    halfway: int,
    command: Callable[[perform.Options], perform.Outcome],
) -> None:
    """Nobody is blamed for it, and no command is told that would undo it."""
    try:
        with pytest.raises(ConflictError, match="another ddtree is changing"):
            command(install.options)
        with pytest.raises(RecoveryPending), ready(str(install.site), None):
            pass
    finally:
        killed(halfway)
    assert install.status().state == State.STOCK


def test_a_reader_keeps_nobody_from_changing(
    install: mini.Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all is as it should be, no lock is taken."""
    after(monkeypatch, perform, "status_of", lambda: whole(install, "apply"))
    assert install.status().state == State.STOCK
    assert install.status().state == State.APPLIED
