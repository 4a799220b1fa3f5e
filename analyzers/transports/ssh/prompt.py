"""Ask a person on the terminal, and nobody else."""

from __future__ import annotations

import atexit
import contextlib
import functools
import getpass
import os
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...install.names import printable

_TERMINAL = "/dev/tty"
# Hosts are reached at the same time, but a person answers one question after another.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Secret:
    """A word that shows itself to nobody by accident."""

    word: str = field(repr=False)


def terminal() -> bool:
    """Whether there is a terminal, whatever stdin and stdout are."""
    with contextlib.suppress(OSError):
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY))
        return True
    return False


def ask(question: str, *, echo: bool = False) -> Secret | None:
    """The answer of the person at the terminal; None without a terminal, or at its end.

    Args:
        question: what to ask; it may come from elsewhere, so it is cleaned.
        echo: show what is typed.
    """
    shown = printable(question).strip()[:300] + " "
    with _one_at_a_time:
        if not terminal():
            return None
        with restored(), contextlib.suppress(EOFError):
            return Secret(_echoed(shown) if echo else getpass.getpass(shown))
    return None


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Let the terminal echo again, even if the program ends while somebody else asks."""
    handle = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY)
    restore = functools.partial(
        termios.tcsetattr, handle, termios.TCSADRAIN, termios.tcgetattr(handle)
    )
    atexit.register(restore)
    try:
        yield
    finally:
        atexit.unregister(restore)
        restore()
        os.close(handle)


def _echoed(question: str) -> str:
    with open(_TERMINAL, "r+b", buffering=0) as opened:  # noqa: PTH123  # a device is no Path
        opened.write(question.encode())
        answer = opened.readline()
    if not answer:
        raise EOFError
    return answer.decode("utf-8", "surrogateescape").rstrip("\r\n")
