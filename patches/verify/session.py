"""Send the harness to a target, and take what comes back until it has ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...analyzers.progress import Say
from ...analyzers.transports import Transport
from ...analyzers.transports.lines import Lines
from ..errors import FarSideError
from . import archive
from .evidence import Evidence
from .fields import Fields

MARK = b"ddtree-event "
# The harness says every few seconds that it lives; starting an interpreter takes longer.
SILENCE_SECONDS = 120.0
TAIL = 25


def evidence_of(
    transport: Transport,
    python: str,
    job: Mapping[str, Any],
    timeout: float,
    say: Say,
    named: str = "",
) -> tuple[Evidence, tuple[str, ...]]:
    """What the harness found, and the last lines that were printed meanwhile.

    Args:
        transport: the way to the target.
        python: its interpreter.
        job: what to do.
        timeout: seconds that all of it may take.
        say: takes sentences about what is being done.
        named: the target as it stands on a command line.

    Raises:
        TargetError: the interpreter cannot be started.
        FarSideError: the harness died, is silent, took too long or sent nonsense.
    """
    command = [python, "-I", "-B", "-c", archive.boot()]
    running = transport.start(command, archive.packed(job))
    evidence = Evidence()
    try:
        whole = _received(Lines(running), evidence, time.monotonic() + timeout, timeout, say)
    except FarSideError as failure:
        running.close()
        failure.log = running.log()[-TAIL:]
        failure.hint = failure.hint.replace(" TARGET", f" {named}".rstrip())
        raise
    except BaseException:
        running.close()
        raise
    code = running.close()
    if not whole:
        early = FarSideError(
            f"the verification in the target ended early, with exit code {code}",
            expected="the harness's own last word",
            hint=f"{python} -c 'import torch, vllm'",
        )
        early.log = running.log()[-TAIL:]
        raise early
    return evidence, running.log()[-TAIL:]


def _received(
    lines: Lines,
    evidence: Evidence,
    until: float,
    timeout: float,
    say: Say,
) -> bool:
    """Take events until the last; whether it came."""
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise _late(f"was not done after {timeout:.0f} seconds", "a larger --timeout", timeout)
        try:
            line = lines.next(min(left, SILENCE_SECONDS))
        except TimeoutError:
            if left > SILENCE_SECONDS:
                raise _late(
                    f"was silent for {SILENCE_SECONDS:.0f} seconds", "a sign of life", timeout
                ) from None
            continue
        if line is None:
            return False
        if line.startswith(MARK):
            event = Fields.parse(line[len(MARK) :])
            kind = event.text("kind")
            if kind == "end":
                return True
            if kind == "progress":
                say(event.text("text"))
            elif kind != "alive":
                evidence.add(kind, event)


def _late(what: str, expected: str, timeout: float) -> FarSideError:
    return FarSideError(
        f"the verification in the target {what}",
        expected=expected,
        hint=f"ddtree verify TARGET --timeout {2 * timeout:.0f}",
    )
