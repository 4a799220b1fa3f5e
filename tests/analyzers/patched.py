"""Releases that `ddtree patch --apply` has edited, and copies of them that differ in one thing."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping
from pathlib import Path

from ddtree.patches import perform
from ddtree.patches.perform import Options
from ddtree.patches.way import Way
from tests.patches import releases
from tests.renamer import link

from . import overlay

RUNTIME = "ddtree_runtime"
# What our own names become in a copy that shares none of them.
RENAMED = {
    "ddtree_runtime": "graft",
    "ddtree": "nursery",
    "hook": "seam",
    "HANDLERS": "WAYS",
    "handler": "way",
    "hooked": "seamed",
    '"v1.': '"first.',
    '"attention.forward"': '"look"',
}


def apply(version: str, root: Path, way: Way = Way.EDITS) -> Path:
    """A copy of a release below `root`, patched by the command's own code."""
    site = releases.copy(version, root)
    outcome = perform.apply(Options(str(site), way=way))
    if not isinstance(outcome, perform.Applied):
        raise TypeError(f"expected the patch to be applied, found {outcome}")
    return site


def copy_of(site: Path, root: Path) -> Path:
    """A copy whose files are links, to be changed by `replace` and `overlay.write` alone."""
    place = root / "site-packages"
    shutil.copytree(site, place, copy_function=link)
    return place


def replace(site: Path, file: str, old: str, new: str) -> None:
    """Put other text into one file of a copy.

    Raises:
        ValueError: the old text is not there exactly once.
    """
    text = (site / file).read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file} holds {old!r} {text.count(old)} times, expected once")
    overlay.write(site, file, text.replace(old, new))


def rename(site: Path, names: Mapping[str, str] = RENAMED) -> None:
    """Give the package beside vLLM, and all that refers to it, other names."""
    files = [*edited(site), *((site / RUNTIME).rglob("*.py"))]
    for path in [site / file for file in files]:
        text = path.read_text()
        for old, new in names.items():
            text = text.replace(old, new)
        overlay.write(site, path.relative_to(site).as_posix(), text)
    (site / RUNTIME / "hooks.py").rename(site / RUNTIME / f"{names['hook']}s.py")
    (site / RUNTIME).rename(site / names[RUNTIME])
    for folder in site.glob(f"{RUNTIME}-*.dist-info"):
        shutil.rmtree(folder)


def edited(site: Path) -> list[Path]:
    """The files of vLLM that mention the package, relative to the site, sorted."""
    marked = RUNTIME.encode()
    every = sorted((site / "vllm").rglob("*.py"))
    return [path.relative_to(site) for path in every if marked in path.read_bytes()]


@functools.cache
def line(file: Path, number: int) -> str:
    """One line of a file, counted from 1, without its end."""
    return file.read_text().split("\n")[number - 1].rstrip()
