"""`ddtree verify`: look at the target, run the harness in it, judge what comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...analyzers.progress import Say, silent
from ...analyzers.transports import Transport
from ...analyzers.transports.local import LocalTransport
from . import conclude, session
from .options import Options
from .precondition import Ready, ready
from .report import Report

if TYPE_CHECKING:
    from ..far.remote import Far


def verify(
    options: Options,
    say: Say = silent,
    far: Far | None = None,
) -> Report:
    """Verify a target.

    Args:
        options: what to do.
        say: takes sentences about what is being done.
        far: where the target is, if it is not on this machine; `options` only names it then.

    Raises:
        UsageError: the options do not make sense.
        TargetError: there is no such target, or no interpreter runs it.
        ConflictError: it is not patched, or not as the patch left it.
        FarSideError: the harness died, is silent, took too long or sent nonsense.
    """
    began = time.monotonic()
    say("looking at the target")
    with _opened(options, far) as (found, transport):
        job = (options if far else options.at_home()).job(found.modules)
        evidence, log = session.evidence_of(
            transport, str(found.python), job, options.timeout, say, found.command
        )
    return conclude.report(options, found, job, evidence, log, time.monotonic() - began)


@contextmanager
def _opened(options: Options, far: Far | None) -> Iterator[tuple[Ready, Transport]]:
    if far is None:
        with ready(options.target, options.python) as found:
            yield found, LocalTransport()
        return
    from ..far import remote

    found = remote.ready(far)
    with far.opener() as transport:
        yield found, transport
