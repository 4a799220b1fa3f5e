"""Code that may run in place of a kernel: bodies that a platform binds over it, compiled verifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .result import Evidence
from .targets.source import Source

# Libraries export tree verifiers under such names; they are hundreds of megabytes, so one plain
# search for what the names share comes first.
_SHARED = b"tree_"
_VERIFIER = re.compile(rb"\w*(?:verify_tree_|tree_speculative_|tree_verify_)\w*")
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
            found = _verifier(block)
            if found is not None:
                return found
            tail = block[-_LONGEST:]


def _verifier(block: bytes) -> str | None:
    place = block.find(_SHARED)
    while place >= 0:
        found = _VERIFIER.search(block, max(place - _LONGEST, 0), place + _LONGEST)
        if found is not None:
            return found.group().decode("ascii", "replace")
        place = block.find(_SHARED, place + 1)
    return None
