"""Time every form of every kernel unit; run from the checkout as `python -m benchmarks.kernels`.

The cases are those of `benchmarks/kernel_cases/*.py`. The forms of a case are interleaved in one
run, because on a shared machine two runs are not comparable; a ratio is how many times as fast as
the case's first form.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from . import gpu
from .machine import commit, cpu_name
from .timing import Case, Timing, measure, wall_clock

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line: a form of a case; `launches` and `share` are None off the GPU.

    `share` is the case's bytes over the form's time, as a share of the card's copy bandwidth.
    """

    case: Case
    timing: Timing
    launches: int | None
    share: float | None


def find_cases(only: list[str] | None) -> Iterator[Case]:
    """Cases of every module in `kernel_cases`, made one at a time.

    Raises:
        FileNotFoundError: if a unit of `only` has no module.
    """
    names = sorted(path.stem for path in (HERE / "kernel_cases").glob("[a-z]*.py"))
    unknown = set(only or ()) - set(names)
    if unknown:
        raise FileNotFoundError(f"--unit: expected one of {names}, found {sorted(unknown)}")
    for name in only or names:
        module = importlib.import_module(f"{__package__}.kernel_cases.{name}")
        yield from module.cases()


def time_case(case: Case, budget: float, least_rounds: int, bandwidth: float | None) -> list[Line]:
    """Time one case with the clock that fits the machine; `bandwidth` is None without a GPU."""
    clock = wall_clock if bandwidth is None else gpu.event_clock
    lines = []
    for timing in measure(case, clock, budget, least_rounds):
        launches = share = None
        if bandwidth is not None:
            # A form that launches nothing ran on the host.
            launches = gpu.count_launches(case.forms[timing.form]) or None
        if bandwidth is not None and launches is not None and case.bytes_moved:
            share = case.bytes_moved / timing.quartiles()[1] / bandwidth
        lines.append(Line(case, timing, launches, share))
    return lines


def header(bandwidth: float | None) -> Iterator[str]:
    """Where and on what the figures were taken."""
    now = datetime.datetime.now(datetime.UTC)
    yield f"date: {now:%Y-%m-%d %H:%M} UTC"
    yield f"commit: {commit()}"
    yield f"cpu: {cpu_name()}, {torch.get_num_threads()} threads"
    yield f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before the run"
    if bandwidth is None:
        yield "gpu: none"
    else:
        yield f"gpu: {torch.cuda.get_device_name()}, copies {bandwidth / 1e9:.0f} GB/s"
    yield f"python {platform.python_version()}, torch {torch.__version__}, triton {triton()}"


def triton() -> str:
    """Triton's version; it is missing where there is no build of it."""
    try:
        return str(importlib.import_module("triton").__version__)
    except ModuleNotFoundError:
        return "none"


def duration(seconds: float) -> str:
    """Three significant digits with a fitting unit."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def cells(line: Line) -> list[str]:
    """Form, median, quartiles, rounds and ratio, then what a GPU adds."""
    low, middle, high = line.timing.quartiles()
    row = [
        line.timing.form,
        duration(middle),
        f"{duration(low)} to {duration(high)}",
        f"{len(line.timing.seconds)}",
        f"{line.timing.speedup():.3g}x",
    ]
    if line.launches is not None:
        row.append(f"{line.launches} launches")
    if line.share is not None:
        row.append(f"{line.share:.0%} of copy bandwidth")
    return row


def as_text(lines: list[Line]) -> str:
    """The case, then a line per form."""
    case = lines[0].case
    rows = [f"{case.unit}  {case.label}"]
    for line in lines:
        form, median, spread, rounds, ratio, *more = cells(line)
        rows.append(
            f"  {form:22} {median:>8}  {spread:>20}  n={rounds:4}{ratio:>7}  {'  '.join(more)}"
        )
    return "\n".join(row.rstrip() for row in rows)


def as_markdown(lines: list[Line]) -> str:
    """Table rows; the first form's row names the case."""
    case = f"{lines[0].case.unit} {lines[0].case.label}"
    names = [case] + [""] * (len(lines) - 1)
    return "\n".join(
        "| " + " | ".join([name, *(row := cells(line))[:5], ", ".join(row[5:])]) + " |"
        for name, line in zip(names, lines, strict=True)
    )


MARKDOWN_HEAD = (
    "\n| case | form | median | quartiles | rounds | ratio | GPU |\n|---|---|---|---|---|---|---|"
)


def main(argv: list[str] | None = None) -> int:
    """Parse, time, print as the figures come; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--unit", action="append", help="only this unit (repeatable)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    # On a busy machine two threads wait for whichever of them has lost its core.
    parser.add_argument("--threads", type=int, default=2, help="torch's CPU threads (default 2)")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    bandwidth = gpu.copy_bandwidth() if torch.cuda.is_available() else None
    budget, least_rounds = (0.2, 3) if options.quick else (2.0, 10)
    markdown = options.format == "markdown"
    for text in header(bandwidth):
        print(f"- {text}" if markdown else text)
    print(MARKDOWN_HEAD if markdown else "")
    try:
        for case in find_cases(options.unit):
            lines = time_case(case, budget, least_rounds, bandwidth)
            print((as_markdown if markdown else as_text)(lines), flush=True)
    except FileNotFoundError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
