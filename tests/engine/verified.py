"""Private environments with a real vLLM, for commands that change or run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ddtree.patches import perform
from ddtree.patches.distribution import KERNELS, RUNTIME

from ..checkout import ROOT

# Text of a file, and what takes its place.
Mutation = Mapping[str, tuple[str, str]]


def private(python: Path, folder: Path) -> Path:
    """A copy of the interpreter's environment in the new `folder`, made of links to its files.

    Whoever changes a file of it has to write another one in its place, as `ddtree patch` does.
    """
    shutil.copytree(python.parents[1], folder, symlinks=True, copy_function=_linked)
    return folder


def patch(environment: Path, work: Path, mutation: Mutation | None = None) -> None:
    """Apply the patch, with a runtime in which something is wrong if that is asked for.

    Args:
        environment: from `private`.
        work: a folder for the changed runtime.
        mutation: by the path of a file of the runtime or of `kernels`, a text that occurs in it
            once and what takes its place.
    """
    runtime, kernels = work / "runtime", work / "kernels"
    shutil.copytree(RUNTIME, runtime, ignore=shutil.ignore_patterns("kernels", "__pycache__"))
    shutil.copytree(KERNELS, kernels, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (before, after) in (mutation or {}).items():
        file = work / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name} holds {before!r} {text.count(before)} times"
        file.write_text(text.replace(before, after), encoding="utf-8")
    options = perform.Options(str(environment))
    if mutation is not None:
        options = replace(options, runtime=runtime, kernels=kernels)
    outcome = perform.apply(options)
    assert isinstance(outcome, perform.Applied), outcome


def command(*arguments: str | Path, **variables: str) -> subprocess.Popen[str]:
    """`ddtree` with these arguments, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ddtree", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".src"), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str | Path, **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `command`."""
    process = command(*arguments, **variables)
    out, err = process.communicate(timeout=540)
    return process.returncode, out, err


def processes(mark: str) -> list[int]:
    """Processes whose command line or environment names `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in told:
            found.append(int(entry.name))
    return found


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        # The cache and the temporary folders are on different disks.
        shutil.copy2(source, target, follow_symlinks=False)
