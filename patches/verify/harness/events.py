"""Events: one line of JSON each, behind a mark, on a descriptor that nothing else writes to."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

MARK = "ddtree-event "
VARIABLE = "DDTREE_VERIFY_EVENTS"
ALIVE_EVERY_SECONDS = 5.0

_LOCK = threading.Lock()


class Unable(RuntimeError):
    """The harness cannot go on, and the message says all that there is to say."""


def reason(failure: BaseException) -> str:
    """What was raised, in one line."""
    words = str(failure).strip() or type(failure).__name__
    line = next((line.strip() for line in words.splitlines() if line.strip()), words)
    return (line if isinstance(failure, Unable) else f"{type(failure).__name__}: {line}")[:500]


def claim_stdout() -> int:
    """Keep stdout for events alone; whatever is printed goes to stderr. Returns its descriptor."""
    descriptor = os.dup(1)
    os.set_inheritable(descriptor, True)
    os.dup2(2, 1)
    os.environ[VARIABLE] = str(descriptor)
    return descriptor


def emit(kind: str, **fields: Any) -> None:
    """Write one event."""
    line = MARK + json.dumps({"kind": kind, **fields}) + "\n"
    left = memoryview(line.encode())
    with _LOCK:
        while left:
            left = left[os.write(int(os.environ[VARIABLE]), left) :]


def progress(text: str) -> None:
    """Say what is being done now."""
    emit("progress", text=text)


def stay_alive() -> None:
    """Say every few seconds that this process still runs."""

    def beat() -> None:
        while True:
            emit("alive")
            _PAUSE.wait(ALIVE_EVERY_SECONDS)

    threading.Thread(target=beat, daemon=True).start()


_PAUSE = threading.Event()
