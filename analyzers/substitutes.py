"""Code that may run in place of a kernel: bodies that a platform binds over it, compiled verifiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .result import Evidence
from .targets.source import Source

# Parts of the names under which libraries export tree verifiers.
SYMBOLS = (b"verify_tree", b"tree_speculative", b"tree_verify")
_CHUNK = 8 << 20
_LONGEST = 64


def rebound_kernels(source: Source, evidence: Iterable[Evidence]) -> Iterator[str]:
    """Sentences about platform code that names a cited kernel in order to run another body."""
    kernels = {
        f"{item.file.removesuffix('.py').replace('/', '.')}.{item.symbol}"
        for item in evidence
        if "." not in item.symbol
    }
    for path in source.files():
        if not path.endswith(".py") or not ("/platforms/" in path or "/worker/" in path):
            continue
        try:
            data = source.read(path)
        except OSError:
            continue
        for kernel in sorted(kernels):
            place = data.find(kernel.encode())
            if place >= 0:
                line = data.count(b"\n", 0, place) + 1
                yield (
                    f"{path}:{line} binds another body to {kernel}: on that platform the body "
                    "that is quoted here is not the one that runs"
                )


def compiled_verifiers(source: Source) -> Iterator[str]:
    """Sentences about shared libraries that carry the name of a tree verifier."""
    for path in source.files():
        if not path.endswith((".so", ".pyd", ".dylib")):
            continue
        found = _first_symbol(source, path)
        if found is not None:
            yield f"the compiled library {path} carries the name {found}; it counts where it is called"


def _first_symbol(source: Source, path: str) -> str | None:
    try:
        stream = source.open(path)
    except OSError:
        return None
    tail = b""
    with stream:
        while True:
            try:
                chunk = stream.read(_CHUNK)
            except OSError:
                return None
            if not chunk:
                return None
            block = tail + chunk
            for symbol in SYMBOLS:
                place = block.find(symbol)
                if place >= 0:
                    return _whole_name(block, place)
            tail = block[-_LONGEST:]


def _whole_name(block: bytes, place: int) -> str:
    start = end = place
    while start > 0 and (block[start - 1 : start].isalnum() or block[start - 1 : start] == b"_"):
        start -= 1
    while end < len(block) and (block[end : end + 1].isalnum() or block[end : end + 1] == b"_"):
        end += 1
    return block[start:end].decode("ascii", "replace")
