"""The checkout as the tests see it: which files belong to it, and copies of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("cli", "analyzers", "patches", "kernels")
# What tools leave behind, where there is no git to say what is ignored.
_LEFT_BEHIND = ("build", "dist", "__pycache__")


@cache
def files() -> tuple[str, ...]:
    """Paths of all files and links of the checkout that are not ignored, relative to its root."""
    listed = _listed_by_git()
    found = listed if listed is not None else sorted(_walked(ROOT))
    return tuple(name for name in found if os.path.lexists(ROOT / name))


def copy(target: Path, *, source: Path = ROOT, links: bool = True) -> Path:
    """A clean copy of the checkout in the new folder `target`.

    Args:
        target: the folder; its parents exist.
        source: the checkout, or an earlier copy of it.
        links: without them, a link becomes a file that holds its target, as git writes it where
            the file system has no links.
    """
    for name in files():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_symlink() and not links:
            place.write_text(str((source / name).readlink()), encoding="utf-8")
        else:
            shutil.copy2(source / name, place, follow_symlinks=False)
    return target


def _listed_by_git() -> list[str] | None:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
    try:
        done = subprocess.run(
            [*command, "--exclude-standard"], capture_output=True, check=False, text=True
        )
    except FileNotFoundError:
        return None
    names = sorted(set(filter(None, done.stdout.split("\0"))))
    return names if done.returncode == 0 else None


def _walked(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        hidden = entry.name.startswith(".") and entry.name not in {".src", ".ci", ".gitignore"}
        if hidden or entry.name in _LEFT_BEHIND or entry.name.endswith((".pyc", ".egg-info")):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _walked(entry)
        else:
            yield entry.relative_to(ROOT).as_posix()
