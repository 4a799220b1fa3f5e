"""Time `ddtree inspect host` of another machine beside the local one: `-m benchmarks.remote`.

The other machine is a real OpenSSH server on the loopback, and the way to it takes a while. Whole
processes, interleaved in one run, so that the load of a shared machine falls out of the
differences. Every inspection is `--no-cache`, and its report is compared with the local one.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.analyzers.remote.slow import Way, slow
from tests.analyzers.transports import near
from tests.analyzers.transports.sshd import Sshd, serve

from .inspect import DDTREE, REQUIREMENT, unpacked
from .machine import commit, cpu_name

DELAYS = (0.0, 0.02)
HEAD = ["form", "median", "to local", "bytes up", "bytes down", "round trips"]


@dataclass(slots=True)
class Form:
    """One way to inspect, with what its runs took."""

    name: str
    command: tuple[str, ...]
    way: Way | None = None
    seconds: list[float] = field(default_factory=list)
    up: int = 0
    down: int = 0
    turns: int = 0

    def run(self) -> object:
        """Inspect once; the report less its target.

        Raises:
            CalledProcessError: the inspection failed.
        """
        if self.way is not None:
            self.way.up = self.way.down = self.way.turns = 0
        start = time.perf_counter()
        done = subprocess.run(self.command, stdout=subprocess.PIPE, check=True)
        self.seconds.append(time.perf_counter() - start)
        if self.way is not None:
            self.up, self.down, self.turns = self.way.up, self.way.down, self.way.turns
        report = json.loads(done.stdout)
        del report["target"]
        return report


def forms(target: Path, folder: Path, server: Sshd, ways: list[Way]) -> Iterator[Form]:
    """The local inspection first, then one for each way and each program that speaks ssh."""
    inspect = (*DDTREE, "inspect", "host", "--no-cache", "--format", "json")
    yield Form("local", (*inspect, str(target)))
    for way in ways:
        for transport in ("paramiko", "openssh"):
            name = f"{transport}, {way.delay * 2000:.0f} ms round trip"
            beyond = replace(server, port=way.port)
            settings = near.settings(folder / name.replace(" ", "-"), beyond)
            there = ("--transport", transport, "--ssh-config", str(settings.ssh_config))
            yield Form(name, (*inspect, *there, "--python", str(target), "ssh://box"), way)


def timed(target: Path, rounds: int) -> list[Form]:
    """Every form, run in turn.

    Raises:
        RuntimeError: a remote report is another one than the local.
    """
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(serve(scratch / "server"))
        ways = [stack.enter_context(slow(server.port, delay)) for delay in DELAYS]
        every = list(forms(target, scratch, server, ways))
        for number in range(rounds + 1):
            reports = [form.run() for form in every]
            if any(report != reports[0] for report in reports):
                raise RuntimeError("a remote report is another one than the local")
            # The first round warms up.
            for form in every if number == 0 else ():
                form.seconds.clear()
    return every


def rows(every: list[Form]) -> Iterator[list[str]]:
    """A row under `HEAD` for each."""
    for form in every:
        pairs = zip(every[0].seconds, form.seconds, strict=True)
        more = statistics.median(own - base for base, own in pairs)
        sizes = [f"{form.up / 1e3:.0f} kB", f"{form.down / 1e3:.0f} kB", str(form.turns)]
        yield [
            form.name,
            f"{statistics.median(form.seconds):.2f} s",
            f"{more:+.2f} s",
            *(sizes if form.way else ["", "", ""]),
        ]


def main(argv: list[str] | None = None) -> int:
    """Parse, time, print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote", description=__doc__)
    parser.add_argument("--target", type=Path, help=f"a folder in place of {REQUIREMENT}")
    parser.add_argument("--rounds", type=int, default=5, help="runs of every form (default 5)")
    options = parser.parse_args(argv)
    now = datetime.datetime.now(datetime.UTC)
    print(f"- {now:%Y-%m-%d %H:%M} UTC, commit {commit()}, {cpu_name()}, {os.cpu_count()} cores")
    print(f"- load: {os.getloadavg()[0]:.1f} before the run\n")
    every = timed(options.target or unpacked(REQUIREMENT), options.rounds)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for row in rows(every):
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
