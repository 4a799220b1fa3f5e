"""Other users of this machine: a folder that all of them reach, and what one of them does there."""

from __future__ import annotations

import codecs
import os
import pickle
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from ddtree.analyzers.errors import DdtreeError

# The child must not read what only root can reach.
from ddtree.patches import edit, offline  # noqa: F401
from tests import wheels

codecs.lookup("utf-8-sig")
# Nobody in particular.
USER = 61234
_Result = TypeVar("_Result")


@pytest.fixture
def commons() -> Iterator[Path]:
    """A folder that every user can enter; tests that need it need root."""
    if os.geteuid() != 0:
        wheels.unavailable("only root can be several users")
    folder = Path(tempfile.mkdtemp(prefix="ddtree-commons-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def given(root: Path, user: int = USER) -> None:
    """Give everything below a folder to a user."""
    for path in (root, *root.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def become(user: int) -> None:
    """Be another user from here on."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def forked(child: Callable[[], object]) -> int:
    """The number of a process that runs a function and ends, with all that is imported here."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Of the threads here, none is needed there.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            child()
        finally:
            os._exit(0)
    return pid


def by(function: Callable[[], _Result], user: int = USER) -> _Result:
    """What a function returns or raises when another user runs it."""
    read, write = os.pipe()

    def child() -> None:
        os.close(read)
        become(user)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(_outcome(function), pipe)

    pid = forked(child)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    done, result = pickle.loads(data)
    if done:
        return result  # type: ignore[no-any-return]
    if isinstance(result, str):
        raise AssertionError(result)
    kind, found, expected, hint = result
    raise kind(found, expected=expected, hint=hint)


def _outcome(function: Callable[[], object]) -> tuple[bool, object]:
    try:
        return True, function()
    # The parent raises it again.
    except DdtreeError as error:
        return False, (type(error), error.found, error.expected, error.hint)
    except BaseException:  # noqa: BLE001
        return False, traceback.format_exc()
