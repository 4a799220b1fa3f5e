"""The compiled files that Python keeps of a module, which must not outlive an edit of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .place import Place


def compiled(place: Place, file: str) -> list[Path]:
    """Every existing `.pyc` of a module of the site: all interpreters, all levels, all caches.

    A cache elsewhere is known from `$PYTHONPYCACHEPREFIX` alone, as the interpreter knows it.
    """
    real = place.real(file)
    named = place.named / file
    return sorted({path for source in (real, named) for path in _of(source)})


def _of(source: Path) -> Iterator[Path]:
    folders = [source.parent / "__pycache__"]
    folders += [prefix / source.parent.relative_to("/") for prefix in _prefixes()]
    for folder in folders:
        # `x.cpython-312.pyc`, `x.cpython-312.opt-1.pyc`; never those of `x_y`.
        yield from folder.glob(f"{source.stem}.*.pyc")


def _prefixes() -> set[Path]:
    named = (os.environ.get("PYTHONPYCACHEPREFIX"), sys.pycache_prefix)
    return {Path(prefix).absolute() for prefix in named if prefix}
