"""Code that a platform runs in place of a kernel: bodies that it binds over it by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .result import Evidence
from .targets.source import Source


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
