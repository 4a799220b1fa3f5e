"""Text from an inspected target is not trusted: this makes it safe to print.

A file name or a source line can hold escape sequences that repaint a terminal, or characters that
reorder what is read. Every text renderer passes its whole input through `cleaned` first.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

T = TypeVar("T")

# Fields whose text has several lines on purpose.
_MULTILINE = frozenset({"quote", "help", "found", "not_found"})


def clean(text: str, keep: str = "") -> str:
    """The text with every character that does not print, except those in `keep`, escaped."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else _escaped(c) for c in text)


def cleaned(value: T) -> T:
    """The same data, every string in it clean; dataclasses, mappings and tuples are walked."""
    return cast(T, _cleaned(value, ""))


def _cleaned(value: Any, keep: str) -> Any:
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, str):
        return clean(value, keep)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: _field(f.name, getattr(value, f.name)) for f in fields(value)}
        return replace(value, **parts)
    if isinstance(value, Mapping):
        return {key: _cleaned(item, keep) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_cleaned(item, keep) for item in value)
    return value


def _field(name: str, value: Any) -> Any:
    return _cleaned(value, "\n\t" if name in _MULTILINE else "")


def _escaped(char: str) -> str:
    # Lone surrogates stand for undecodable bytes of a file name (PEP 383).
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
