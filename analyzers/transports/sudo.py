"""Any transport, as root: through `sudo -n`, which never asks for a password."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import TargetError, UnreachableError
from ..install.names import printable
from . import Running, Transport
from .explained import ExplainedRunning

_PREFIX = ("sudo", "-n", "--")
# Its own words, or a shell's about it; in some languages only the name is the same.
_WORDS = re.compile(r"(?:^|.*\W)sudo: (?P<why>.+)")


class SudoTransport:
    """Commands that run as root."""

    def __init__(self, transport: Transport) -> None:
        """Use this transport."""
        self._transport = transport

    def start(self, command: Sequence[str], stdin: bytes) -> Running:
        """See `Transport`."""
        running = self._transport.start([*_PREFIX, *command], stdin)
        return ExplainedRunning(running, _explained)


def _explained(_: int, log: tuple[str, ...]) -> TargetError | None:
    for line in reversed(log):
        if found := _WORDS.match(line):
            return UnreachableError(
                f"sudo refuses on the target: {printable(found['why'])}",
                expected="a rule with NOPASSWD, since sudo is not given a password",
                hint="sudo -n -l   (on the target)",
            )
    return None
