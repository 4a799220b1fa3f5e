"""Commands that change or run a private environment with a real vLLM; see `installs`."""

from __future__ import annotations

import os
import re
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
# What `ddtree verify` says of its progress where there is no terminal.
PROGRESS = re.compile(r"(?m)^\[\d+:\d\d\] \S.*\n")


def patch(environment: Path, work: Path, mutation: Mutation | None = None) -> None:
    """Apply the patch, with a runtime in which something is wrong if that is asked for.

    Args:
        environment: the folder of an unpatched one.
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


def run(*arguments: str | Path, patience: float = 540.0, **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `command`, which may take so many seconds."""
    process = command(*arguments, **variables)
    out, err = process.communicate(timeout=patience)
    return process.returncode, out, err


def beside_progress(err: str) -> str:
    """What else a command says on stderr."""
    return PROGRESS.sub("", err)


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
