"""Time trees in a real engine beside the stock chain of the same drafter.

Run from the checkout as `python -m benchmarks.engine`. Every form has an engine in a process of
its own; they run the same requests in turn, one pass each per round, so that a load on a shared
machine hits them all. A step is one call of the engine in which every request decodes, and a
pass's figure is the median of its steps; a ratio compares two passes of the same round.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.engine import environment, installs, runs

from ddtree.analyzers.targets.cache import cache_folder

from .engine_cases import forms as every_form
from .engine_cases.forms import Form, Workload
from .engine_cases.passes import Pass, Runner
from .engine_cases.table import table, verdicts
from .engine_cases.workers import FAR, Place, started
from .machine import commit, cpu_name
from .timing import Case, measure


def workloads(python: Path, dtype: str) -> dict[str, Workload]:
    """What can be run, by the name on the command line."""
    large = large_models(python)
    target, drafter = str(large / "target"), str(large / "drafter")
    return {
        "tiny": Workload("tiny", runs.TARGET, runs.DRAFTER, runs.VOCABULARY, dtype, 8, 96),
        "large": Workload("large", target, drafter, 12288, dtype, 4, 20),
        "calibrated": Workload("calibrated", target, None, 12288, dtype, 4, 64),
    }


def large_models(python: Path) -> Path:
    """The folder with the models of `far/models.py` in the cache; made once."""
    folder = cache_folder() / "benchmarks" / "random-qwen3-101m"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=folder.parent))
        subprocess.run([str(python), str(FAR / "models.py"), str(scratch)], check=True)
        scratch.rename(folder)
    return folder


def prompts(workload: Workload) -> list[list[int]]:
    """Random prompts of 16 to 64 tokens."""
    source = random.Random(5)
    lengths = [source.randrange(16, 64) for _ in range(workload.requests)]
    return [[source.randrange(workload.vocabulary - 12) for _ in range(n)] for n in lengths]


@contextlib.contextmanager
def runners(place: Place, workload: Workload, chosen: list[Form]) -> Iterator[list[Runner]]:
    """An engine for each form; the calibrated proposer knows what no speculation generates."""
    asked = prompts(workload)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made: dict[str, Runner] = {}
        # No speculation comes first: it tells the calibrated proposer what will be right.
        for form in sorted(chosen, key=lambda form: form.drafts):
            folder = scratch / form.name.replace(" ", "-")
            folder.mkdir()
            if form.drafts and workload.drafter is None:
                known = known_texts(made[every_form.PLAIN])
                given = every_form.calibration(workload, form, known)
                (folder / "calibrated.json").write_text(json.dumps(given))
            arguments = every_form.arguments(workload, form)
            print(f"starting: {form.name}", file=sys.stderr)
            worker = stack.enter_context(started(place, folder, arguments, patched=form.patched))
            made[form.name] = Runner(form, workload, worker, asked)
        yield [made[form.name] for form in chosen]


def known_texts(plain: Runner) -> list[list[int]]:
    """Prompts and what the target greedily generates after them."""
    plain()
    return [
        prompt + tokens
        for prompt, tokens in zip(plain.prompts, plain.passes.pop().tokens, strict=True)
    ]


def time_forms(
    place: Place, workload: Workload, chosen: list[Form], rounds: int, starts: int
) -> list[Runner]:
    """Let every form run at least `rounds` passes in turn, the engines being started anew between.

    A process keeps some of its speed for life, by where its memory happens to lie, so passes of
    one process alone would repeat one draw of that luck.
    """
    passes: dict[str, list[Pass]] = {form.name: [] for form in chosen}
    each = -(-rounds // starts)
    for turn in range(starts):
        # Neither does the same form always start first.
        first = turn % len(chosen)
        with runners(place, workload, chosen[first:] + chosen[:first]) as made:
            forms = {runner.form.name: runner for runner in made}
            measure(Case("engine", "", forms), lambda form, _: form(), 0.0, each)
            # The two passes before the rounds warmed up.
            for runner in made:
                passes[runner.form.name] += runner.passes[-each:]
    known = {runner.form.name: runner for runner in made}
    for name, each_pass in passes.items():
        known[name].passes = each_pass
    return [known[form.name] for form in chosen]


def header(threads: int) -> Iterator[str]:
    """Where and on what the figures were taken."""
    now = datetime.datetime.now(datetime.UTC)
    yield f"date: {now:%Y-%m-%d %H:%M} UTC"
    yield f"commit: {commit()}"
    yield f"cpu: {cpu_name()}, {threads} threads of {os.cpu_count()} cores"
    yield f"load: {os.getloadavg()[0]:.1f} before the run"


def main(argv: list[str] | None = None) -> int:
    """Parse, time, print as the figures come; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    names = ("tiny", "large", "calibrated")
    parser.add_argument("--workload", action="append", choices=names, help="only this (repeatable)")
    parser.add_argument(
        "--form", action="append", help="only this beside the baseline (repeatable)"
    )
    parser.add_argument("--rounds", type=int, default=12, help="passes of each form (default 12)")
    parser.add_argument("--starts", type=int, default=4, help="engines of each form (default 4)")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    # On a busy machine two threads wait for whichever of them has lost its core.
    parser.add_argument("--threads", type=int, default=1, help="of each engine (default 1)")
    options = parser.parse_args(argv)
    chosen = choose(parser, options.form)
    python = environment.engine_python()
    for text in header(options.threads):
        print(f"- {text}")
    with tempfile.TemporaryDirectory() as scratch:
        patched = installs.patched(python, Path(scratch) / "patched")
        place = Place(python, patched, options.threads)
        known = workloads(python, options.dtype)
        for name in options.workload or names:
            made = time_forms(place, known[name], chosen, options.rounds, options.starts)
            print(f"\n{table(known[name], made)}\n\n{verdicts(made)}", flush=True)
            print(f"load: {os.getloadavg()[0]:.1f} after it")
    return 0


def choose(parser: argparse.ArgumentParser, names: list[str] | None) -> list[Form]:
    """The forms of these names, and what they are compared with."""
    known = {form.name: form for form in every_form.forms()}
    if unknown := set(names or ()) - set(known):
        parser.error(f"--form: expected one of {sorted(known)}, found {sorted(unknown)}")
    always = {every_form.STOCK_CHAIN, every_form.CONTROL, every_form.PLAIN}
    return [form for form in known.values() if not names or form.name in {*names, *always}]


if __name__ == "__main__":
    sys.exit(main())
