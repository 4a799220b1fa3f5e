"""Compiled libraries that carry the name of a tree verifier, as a symbol or in an op schema."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import BinaryIO

from .targets.source import Source

# Libraries are hundreds of megabytes, so one plain search for what the names share comes first.
_SHARED = b"tree_"
_VERIFIER = re.compile(rb"\w*(?:verify_tree_|tree_speculative_|tree_verify_)\w*")
_LONGEST = 64
_CHUNK = 1 << 20
# ELF, 64 bits, little endian: where the section headers are, and what one of them holds.
_ELF = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NO_BITS, _IN_MEMORY, _EXECUTABLE = 8, 0x2, 0x4


def compiled_verifiers(source: Source) -> Iterator[str]:
    """Sentences about shared libraries that carry the name of a tree verifier."""
    for path in source.files():
        if not path.endswith((".so", ".pyd", ".dylib")):
            continue
        try:
            with source.open(path) as stream:
                found = _first_verifier(stream, seeks=source.independent_reads)
        except (OSError, struct.error):
            continue
        if found is not None:
            yield f"the library {path} carries the name {found}, which counts where it is called"


def _first_verifier(stream: BinaryIO, seeks: bool) -> str | None:
    """The first such name in what the library maps as data, or anywhere if that is not known."""
    sections = list(_data_sections(stream)) if seeks else []
    if not sections:
        stream.seek(0)
        return _search(iter(lambda: stream.read(_CHUNK), b""))
    for offset, size in sections:
        stream.seek(offset)
        found = _search(_pieces(stream, size))
        if found is not None:
            return found
    return None


def _data_sections(stream: BinaryIO) -> Iterator[tuple[int, int]]:
    """Offset and size of the sections that hold data: constants, and the names of symbols.

    Code and debugging information are nine tenths of a library and hold no such names of their own.
    """
    header = stream.read(64)
    if len(header) < 64 or not header.startswith(_ELF):
        return
    (start,) = struct.unpack_from("<Q", header, 0x28)
    (count,) = struct.unpack_from("<H", header, 0x3C)
    stream.seek(start)
    table = stream.read(count * _SECTION.size)
    for _, kind, flags, _, offset, size, *_ in _SECTION.iter_unpack(table):
        if kind != _NO_BITS and flags & _IN_MEMORY and not flags & _EXECUTABLE:
            yield offset, size


def _pieces(stream: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0:
        piece = stream.read(min(size, _CHUNK))
        if not piece:
            return
        size -= len(piece)
        yield piece


def _search(pieces: Iterator[bytes]) -> str | None:
    tail = b""
    for piece in pieces:
        # A name may lie across two pieces.
        found = _verifier(tail + piece[:_LONGEST]) or _verifier(piece)
        if found is not None:
            return found
        tail = piece[-_LONGEST:]
    return None


def _verifier(block: bytes) -> str | None:
    place = block.find(_SHARED)
    while place >= 0:
        found = _VERIFIER.search(block, max(place - _LONGEST, 0), place + _LONGEST)
        if found is not None:
            return found.group().decode("ascii", "replace")
        place = block.find(_SHARED, place + 1)
    return None
