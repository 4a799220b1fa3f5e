"""File names as the report writes them, and as imports do."""

from __future__ import annotations

_LONE_BYTE = range(0xDC80, 0xDD00)


def printable(name: str) -> str:
    """`name` with every character escaped that UTF-8, JSON or a terminal could choke on.

    Bytes that are no UTF-8 (which Python carries as lone surrogates) become `\\xff`; control
    characters become their usual escapes.
    """
    return name if name.isprintable() else "".join(_shown(char) for char in name)


def dotted_name(path: str) -> str:
    """The module that a file defines, by its path relative to where imports look."""
    return without_suffix(without_suffix(path, ".py"), "/__init__").replace("/", ".")


def without_suffix(text: str, suffix: str) -> str:
    """`str.removesuffix`, which Python 3.8 lacks."""
    return text[: -len(suffix)] if suffix and text.endswith(suffix) else text


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    if ord(char) in _LONE_BYTE:
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
