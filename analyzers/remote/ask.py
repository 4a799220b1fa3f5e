"""One command on the other side, and its one reply, which is believed in nothing."""

from __future__ import annotations

import bz2
import hashlib
import json
import re
import secrets
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ..cache import build
from ..errors import TargetError
from ..install.names import printable
from ..transports import Running, Transport
from .bundle import OLDEST, command, line
from .frame import HEADER_LENGTH, MARK, MARK_NONE, TOKEN_LENGTH
from .message import Reply

# Shells may greet at some length before the reply begins.
MOST_NOISE = 1 << 20
# A vLLM has 40 MB of Python, 9 MB when compressed.
MOST_BODY = 64 << 20
MOST_DATA = 256 << 20
# Compiled libraries of gigabytes are hashed meanwhile.
PATIENCE_SECONDS = 120.0
# How much longer the command there may take than anybody waits for it here.
_GRACE_SECONDS = 30
_NONE = MARK_NONE.replace("\\001", "\x01").encode()

# Opens a way to the other side; it is closed between commands.
Opener = Callable[[], AbstractContextManager[Transport]]


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
    token = secrets.token_hex(TOKEN_LENGTH // 2)
    full = {**request, "python": python, "token": token, "seconds": int(patience) + _GRACE_SECONDS}
    running = transport.start(command(python, token), line(full))
    code: int | None = None
    try:
        body, received = _Reader(running, token, place, python, patience).body()
    except _EndedError as ended:
        code = running.close()
        raise _silent(place, code, running.log(), ended.received) from None
    finally:
        if code is None:
            running.close()
    reply, contents = _opened(body, place)
    if reply.refusal is not None:
        said = reply.refusal
        raise RefusedError(
            f"{place}: {_line(said.found, 4000)}",
            expected=_line(said.expected),
            hint=_line(said.hint),
        )
    return Asked(reply, contents, received)


class RefusedError(TargetError):
    """The other side says why it has no answer; its hint is a command for there."""


class _EndedError(Exception):
    """The command ended before its reply did."""

    def __init__(self, received: int) -> None:
        super().__init__()
        self.received = received


class _Reader:
    """Takes chunks until a frame with our token is whole."""

    def __init__(
        self, running: Running, token: str, place: str, python: str | None, patience: float
    ) -> None:
        self._running = running
        self._mark = MARK + token.encode("ascii")
        self._none = _NONE + token.encode("ascii")
        self._place = place
        self._python = python
        self._until = time.monotonic() + patience
        self._patience = patience
        self._data = bytearray()
        self._received = 0

    def body(self) -> tuple[bytes, int]:
        """The body of the frame, checked against its hash, and how many bytes came in all."""
        header = self._header()
        length, digest = _numbers(header, self._place)
        self._fill(length)
        body = bytes(self._data[:length])
        if hashlib.sha256(body).hexdigest() != digest:
            raise _garbage(self._place, "a reply that does not match its own hash")
        return body, self._received

    def _header(self) -> bytes:
        while True:
            place = self._data.find(self._mark)
            if place >= 0:
                del self._data[:place]
                self._fill(HEADER_LENGTH)
                header = bytes(self._data[:HEADER_LENGTH])
                del self._data[:HEADER_LENGTH]
                return header
            place = self._data.find(self._none)
            if place >= 0 and b"\n" in self._data[place:]:
                words = bytes(self._data[place + len(self._none) :]).partition(b"\n")[0]
                raise _no_python(self._place, self._python, words.decode("utf-8", "replace"))
            if len(self._data) > MOST_NOISE:
                raise _garbage(self._place, f"more than {MOST_NOISE >> 20} MiB without a reply")
            self._more()

    def _fill(self, length: int) -> None:
        while len(self._data) < length:
            self._more()

    def _more(self) -> None:
        try:
            chunk = self._running.chunk(max(0.0, self._until - time.monotonic()))
        except TimeoutError:
            raise TargetError(
                f"{self._place} gave no whole reply within {self._patience:g} seconds",
                expected="an answer in time; slow disks and links may take longer",
                hint="ddtree inspect host --timeout SECONDS",
            ) from None
        if chunk is None:
            raise _EndedError(self._received)
        self._received += len(chunk)
        self._data += chunk


def _numbers(header: bytes, place: str) -> tuple[int, str]:
    found = re.fullmatch(rb" (\d{12}) ([0-9a-f]{64})\n", header[len(MARK) + TOKEN_LENGTH :])
    if found is None:
        raise _garbage(place, "a reply whose first line makes no sense")
    length = int(found[1])
    if length > MOST_BODY:
        raise _garbage(place, f"a reply of {length:,} bytes, more than {MOST_BODY >> 20} MiB")
    return length, found[2].decode("ascii")


def _opened(body: bytes, place: str) -> tuple[Reply, dict[str, bytes]]:
    """The message of a body and the contents behind it."""
    try:
        data = _inflated(body)
        end = 4 + int.from_bytes(data[:4], "big")
        reply: Reply = build(Reply, json.loads(data[4:end]))
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, RecursionError):
        raise _garbage(place, "a reply that cannot be read") from None
    contents: dict[str, bytes] = {}
    for path, size in reply.contents.items():
        if size < 0 or end + size > len(data):
            raise _garbage(place, "a reply that is shorter than it says")
        contents[path] = data[end : end + size]
        end += size
    return reply, contents


def _inflated(body: bytes) -> bytes:
    kind, packed = body[:1], body[1:]
    if kind == b"b":
        unpacker = bz2.BZ2Decompressor()
        data = unpacker.decompress(packed, MOST_DATA)
        whole = unpacker.eof
    elif kind == b"z":
        inflater = zlib.decompressobj()
        data = inflater.decompress(packed, MOST_DATA)
        whole = inflater.eof
    else:
        raise ValueError("no such compression")
    if not whole:
        raise ValueError("cut short, or far too large")
    return data


def _silent(place: str, code: int, log: tuple[str, ...], received: int) -> TargetError:
    said = next((text for text in reversed(log) if text.strip()), "")
    why = f": {_line(said)}" if said else ""
    what = "before its reply was whole" if received else "without a reply"
    return TargetError(
        f"the command on {place} ended {what} (exit code {code}){why}",
        expected="a shell that runs commands, and Python 3.8 or later",
        hint="ddtree inspect host --help",
    )


def _no_python(place: str, python: str | None, found: str) -> TargetError:
    oldest = ".".join(map(str, OLDEST))
    seen = _line(found).strip(" ;")
    if seen:
        what = f"no Python on {place} is {oldest} or later; there is {seen}"
    elif python:
        what = f"there is no interpreter {printable(python)} on {place}"
    else:
        what = f"there is no Python on {place}"
    return TargetError(
        what,
        expected=f"Python {oldest} or later on the other side, or its path after --python",
        hint="ddtree inspect host --help",
    )


def _garbage(place: str, what: str) -> TargetError:
    return TargetError(
        f"{place} sent {what}",
        expected="the reply of the probe that was sent there",
        hint="ddtree inspect host --help",
    )


def _line(text: str, most: int = 300) -> str:
    """Words of the other side on one line, with nothing in them that a terminal obeys."""
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
