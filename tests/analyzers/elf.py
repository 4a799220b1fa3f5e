"""The smallest shared libraries that carry dynamic symbols, for whoever reads their names."""

from __future__ import annotations

import struct
from collections.abc import Iterable

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_STRTAB, _DYNSYM = 3, 11
_SHARED_OBJECT, _X86_64 = 3, 62
_GLOBAL_FUNCTION = 0x12


def shared_library(symbols: Iterable[str], schemas: Iterable[str] = ()) -> bytes:
    """An ELF file for x86-64 that exports `symbols`; `schemas` are texts in its read-only data.

    It has sections and no code, so it can be read and not loaded.
    """
    exported = list(symbols)
    names, offsets = _strings(exported)
    table = _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    table += b"".join(_SYMBOL.pack(at, _GLOBAL_FUNCTION, 0, 1, 0x1000, 16) for at in offsets)
    text, _ = _strings(list(schemas))
    labels, (dynsym, dynstr, rodata, shstrtab) = _strings(
        [".dynsym", ".dynstr", ".rodata", ".shstrtab"]
    )
    starts = [_HEADER.size]
    for part in (table, names, text, labels):
        starts.append(starts[-1] + len(part))
    sections = [
        _SECTION.pack(*[0] * 10),
        _section(dynsym, _DYNSYM, starts[0], len(table), link=2, entry=_SYMBOL.size),
        _section(dynstr, _STRTAB, starts[1], len(names)),
        _section(rodata, 1, starts[2], len(text)),
        _section(shstrtab, _STRTAB, starts[3], len(labels)),
    ]
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    sizes = (_HEADER.size, 0, 0, _SECTION.size, len(sections), 4)
    head = _HEADER.pack(identity, _SHARED_OBJECT, _X86_64, 1, 0, 0, starts[4], 0, *sizes)
    return head + table + names + text + labels + b"".join(sections)


def _section(name: int, kind: int, start: int, size: int, link: int = 0, entry: int = 0) -> bytes:
    # The number of local symbols is 1 for a symbol table: the empty one in front.
    return _SECTION.pack(name, kind, 2, 0, start, size, link, int(entry > 0), 1, entry)


def _strings(texts: list[str]) -> tuple[bytes, list[int]]:
    data, offsets = b"\0", []
    for text in texts:
        offsets.append(len(data))
        data += text.encode() + b"\0"
    return data, offsets
