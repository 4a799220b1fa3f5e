"""What every test process does first."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Have Ctrl-C end processes again: a shell has what it starts in the background ignore it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
