"""Downloaded wheels, kept between runs."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion

from ..errors import FetchError
from ..install.names import printable


def cache_folder() -> Path:
    """`$DDTREE_CACHE`, else `ddtree` in `$XDG_CACHE_HOME`, else `~/.cache/ddtree`."""
    named = os.environ.get("DDTREE_CACHE")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ddtree"


def cached_wheel(requirement: Requirement) -> Path | None:
    """A kept wheel of an exactly pinned requirement; anything else may have a newer answer."""
    if not is_pinned(requirement):
        return None
    try:
        kept = sorted((cache_folder() / "wheels").glob("*.whl"))
    except OSError:
        return None
    # A wheel that was damaged meanwhile is fetched again.
    fitting = (path for path in kept if _fits(path, requirement) and zipfile.is_zipfile(path))
    return next(fitting, None)


def is_pinned(requirement: Requirement) -> bool:
    """Whether exactly one version can satisfy the requirement."""
    specs = list(requirement.specifier)
    exact = len(specs) == 1 and specs[0].operator in ("==", "===")
    return exact and "*" not in specs[0].version


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder inside the cache, so that a rename out of it is atomic; then removed.

    Raises:
        FetchError: the cache cannot be written.
    """
    root = cache_folder()
    try:
        (root / "wheels").mkdir(parents=True, exist_ok=True)
        scratch = tempfile.mkdtemp(prefix=".download-", dir=root)
    except OSError as error:
        raise _unwritable(root, error) from error
    try:
        yield Path(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def keep(wheel: Path) -> Path:
    """Move a downloaded wheel to its place; of two processes, the later one wins, with the same.

    Raises:
        FetchError: the cache cannot be written.
    """
    place = cache_folder() / "wheels" / wheel.name
    try:
        return wheel.replace(place)
    except OSError as error:
        raise _unwritable(place.parent, error) from error


def _fits(path: Path, requirement: Requirement) -> bool:
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
    except (InvalidWheelFilename, InvalidVersion):
        return False
    same = name == canonicalize_name(requirement.name)
    return same and requirement.specifier.contains(version, prereleases=True)


def _unwritable(folder: Path, error: OSError) -> FetchError:
    return FetchError(
        f"the cache {printable(str(folder))} cannot be written: {error.strerror}",
        expected="a folder for downloaded wheels; DDTREE_CACHE names another one",
        hint='export DDTREE_CACHE="$(mktemp -d)"',
    )
