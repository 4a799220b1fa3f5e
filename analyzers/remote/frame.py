"""A reply as bytes: marked, measured and signed by its hash, since shells print what they like.

`MARK token length digest newline` are followed by that many bytes: one letter for the compression,
and, compressed, the size of the head, the head (JSON) and the contents one after the other. Used on
both sides, so Python 3.8 has to understand it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from typing import Any

MARK = b"\x01ddtree-reply "
# What the shell's `printf` writes where no Python was found; a token and what was found follow.
MARK_NONE = "\\001ddtree-none "
TOKEN_LENGTH = 16
# Mark, token, 12 digits of length, digest in hex, with blanks between and a newline at the end.
HEADER_LENGTH = len(MARK) + TOKEN_LENGTH + 1 + 12 + 1 + 64 + 1


def framed(token: str, head: Any, contents: Iterable[bytes]) -> bytes:
    """A whole frame."""
    words = json.dumps(head, separators=(",", ":")).encode("ascii")
    body = compressed(b"".join((len(words).to_bytes(4, "big"), words, *contents)))
    digest = hashlib.sha256(body).hexdigest()
    return MARK + f"{token} {len(body):012d} {digest}\n".encode("ascii") + body


def compressed(data: bytes) -> bytes:
    """The data behind a letter that names the compression: the better one that Python has here."""
    try:
        import bz2
    except ImportError:
        return b"z" + zlib.compress(data, 9)
    return b"b" + bz2.compress(data, 9)
