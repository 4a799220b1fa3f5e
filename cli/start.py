"""Where the process begins: an interrupt ends it without a traceback from the first import on."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Entry point of the `ddtree` script and of `python -m ddtree`."""
    # Where interrupts are ignored, as in a shell's background jobs, they stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from .app import main as run

    run()


def _end(number: int, frame: FrameType | None) -> None:
    """Nothing has been begun, so nothing has to be taken back."""
    os._exit(INTERRUPTED)


def begun() -> None:
    """From here on an interrupt is an exception, and whoever has begun something ends it."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
