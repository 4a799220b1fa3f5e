"""One command there that runs our modules, and its one reply, which is believed in nothing."""

from __future__ import annotations

import bz2
import hashlib
import json
import re
import secrets
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import TargetError
from ..install.names import printable
from ..transports import Running, Transport
from .bundle import OLDEST, Program, command, line
from .frame import HEADER_LENGTH, MARK, MARK_NONE, TOKEN_LENGTH

# Shells may greet at some length before the reply begins.
MOST_NOISE = 1 << 20
# A vLLM has 40 MB of Python, 9 MB when compressed.
MOST_BODY = 64 << 20
MOST_DATA = 256 << 20
# Compiled libraries of gigabytes are hashed meanwhile.
PATIENCE_SECONDS = 120.0
_HASTE_SECONDS = 1.0
# How much longer the command there may take than anybody waits for it here.
_GRACE_SECONDS = 30
_NONE = MARK_NONE.replace("\\001", "\x01").encode()


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What a reply holds.

    Attributes:
        head: what the program said, as JSON knows it; nothing about it is checked.
        contents: the bytes behind the head.
        received: how many bytes came for all of it.
    """

    head: Any
    contents: bytes
    received: int


def exchange(
    transport: Transport,
    place: str,
    python: str | None,
    request: Mapping[str, Any],
    program: Program,
    patience: float = PATIENCE_SECONDS,
) -> Exchanged:
    """Run a program of ours once.

    Args:
        transport: the way to the other side.
        place: what the user called the other side.
        python: the interpreter, environment or folder that is meant there, if any.
        request: what the program is asked.
        program: what runs there.
        patience: seconds until the whole reply has to be there.

    Raises:
        TargetError: there is no Python that runs it, or no reply that makes sense.
    """
    token = secrets.token_hex(TOKEN_LENGTH // 2)
    full = {**request, "python": python, "token": token, "seconds": int(patience) + _GRACE_SECONDS}
    running = transport.start(command(python, token, program.oldest), line(full, program))
    code: int | None = None
    # A reply that was given up is not waited for; a change goes on to its end.
    patience_left = None if request.get("finish") else _HASTE_SECONDS
    try:
        body, received = _Reader(running, token, place, python, patience, program).body()
    except _EndedError as ended:
        code = running.close()
        raise _silent(place, code, running.log(), ended.received) from None
    finally:
        if code is None:
            running.close(patience_left)
    return _opened(body, place, received)


class _EndedError(Exception):
    """The command ended before its reply did."""

    def __init__(self, received: int) -> None:
        super().__init__()
        self.received = received


class _Reader:
    """Takes chunks until a frame with our token is whole."""

    def __init__(
        self,
        running: Running,
        token: str,
        place: str,
        python: str | None,
        patience: float,
        program: Program,
    ) -> None:
        self._running = running
        self._mark = MARK + token.encode("ascii")
        self._none = _NONE + token.encode("ascii")
        self._place = place
        self._python = python
        self._until = time.monotonic() + patience
        self._patience = patience
        self._oldest = program.oldest
        self._data = bytearray()
        self._received = 0

    def body(self) -> tuple[bytes, int]:
        """The body of the frame, checked against its hash, and how many bytes came in all."""
        header = self._header()
        length, digest = _numbers(header, self._place)
        self._fill(length)
        body = bytes(self._data[:length])
        if hashlib.sha256(body).hexdigest() != digest:
            raise garbage(self._place, "a reply that does not match its own hash")
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
                raise _no_python(
                    self._place, self._python, words.decode("utf-8", "replace"), self._oldest
                )
            if len(self._data) > MOST_NOISE:
                raise garbage(self._place, f"more than {MOST_NOISE >> 20} MiB without a reply")
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
        raise garbage(place, "a reply whose first line makes no sense")
    length = int(found[1])
    if length > MOST_BODY:
        raise garbage(place, f"a reply of {length:,} bytes, more than {MOST_BODY >> 20} MiB")
    return length, found[2].decode("ascii")


def _opened(body: bytes, place: str, received: int) -> Exchanged:
    """The head of a body and the contents behind it."""
    try:
        data = _inflated(body)
        end = 4 + int.from_bytes(data[:4], "big")
        return Exchanged(json.loads(data[4:end]), data[end:], received)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        raise garbage(place, "a reply that cannot be read") from None


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
    why = f": {one_line(said)}" if said else ""
    what = "before its reply was whole" if received else "without a reply"
    return TargetError(
        f"the command on {place} ended {what} (exit code {code}){why}",
        expected=f"a shell that runs commands, and Python {OLDEST[0]}.{OLDEST[1]} or later",
        hint="ddtree inspect host --help",
    )


def _no_python(place: str, python: str | None, found: str, version: tuple[int, int]) -> TargetError:
    oldest = ".".join(map(str, version))
    seen = one_line(found).strip(" ;")
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


def garbage(place: str, what: str) -> TargetError:
    """The error for a reply that makes no sense."""
    return TargetError(
        f"{place} sent {what}",
        expected="the reply of the probe that was sent there",
        hint="ddtree inspect host --help",
    )


def one_line(text: str, most: int = 300) -> str:
    """Words of the other side on one line, with nothing in them that a terminal obeys."""
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
