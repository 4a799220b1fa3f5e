"""`ddtree verify`: look at the target, run the harness in it, judge what comes back."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...analyzers.transports import Transport
from ...analyzers.transports.local import LocalTransport
from . import conclude, session
from .options import Options
from .precondition import ready
from .report import Report


def _silent(_: str) -> None:
    """Progress that nobody wants to see."""


def verify(
    options: Options,
    say: Callable[[str], None] = _silent,
    transport: Transport | None = None,
) -> Report:
    """Verify a target.

    Args:
        options: what to do.
        say: takes sentences about what is being done.
        transport: carries the harness to the target; this machine's when None.

    Raises:
        UsageError: the options do not make sense.
        TargetError: there is no such target, or no interpreter runs it.
        ConflictError: it is not patched, or not as the patch left it.
        FarSideError: the harness died, is silent, took too long or sent nonsense.
    """
    began = time.monotonic()
    say("looking at the target")
    with ready(options.target, options.python) as found:
        job = options.job(found.modules)
        evidence, log = session.evidence_of(
            transport or LocalTransport(), str(found.python), job, options.timeout, say
        )
    return conclude.report(options, found, job, evidence, log, time.monotonic() - began)
