"""Ask the probe about an install on the other side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ..cache import build
from ..errors import TargetError
from ..transports import Transport
from .bundle import Program
from .exchange import PATIENCE_SECONDS, Exchanged, exchange, garbage, one_line
from .message import Reply

PROBE = Program("analyzers.remote.far.answer")

# Opens a way to the other side; it is closed between commands.
Opener = Callable[[], AbstractContextManager[Transport]]


class RefusedError(TargetError):
    """The other side says why it has no answer; its hint is a command for there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply with the contents that it carries, by path, and how many bytes came for it."""

    reply: Reply
    contents: Mapping[str, bytes]
    received: int


def ask(
    transport: Transport,
    place: str,
    python: str | None,
    request: Mapping[str, Any],
    patience: float = PATIENCE_SECONDS,
) -> Asked:
    """Run the probe once.

    Args:
        transport: the way to the other side.
        place: what the user called the other side.
        python: the interpreter, environment or folder that is meant there, if any.
        request: `more` (names of metadata files) to survey an install, or `paths` with `around`
            and `known` to read files; see `far.answer`.
        patience: seconds until the whole reply has to be there.

    Raises:
        TargetError: there is no such install, or no reply that makes sense.
    """
    asked = _asked(exchange(transport, place, python, request, PROBE, patience), place)
    if asked.reply.refusal is not None:
        said = asked.reply.refusal
        raise RefusedError(
            f"{place}: {one_line(said.found, 4000)}",
            expected=one_line(said.expected),
            hint=one_line(said.hint),
        )
    return asked


def _asked(exchanged: Exchanged, place: str) -> Asked:
    try:
        reply: Reply = build(Reply, exchanged.head)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise garbage(place, "a reply that cannot be read") from None
    contents: dict[str, bytes] = {}
    end = 0
    for path, size in reply.contents.items():
        if size < 0 or end + size > len(exchanged.contents):
            raise garbage(place, "a reply that is shorter than it says")
        contents[path] = exchanged.contents[end : end + size]
        end += size
    return Asked(reply, contents, exchanged.received)
