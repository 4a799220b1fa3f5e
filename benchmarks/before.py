"""Time what was changed beside how it was: `python -m benchmarks.before CHECKOUT`.

CHECKOUT is a work tree of the commit to compare with. Both runtimes are loaded into this process
under names of their own for what can be timed apart, and put beside vLLM in environments of their
own for what takes a whole engine. The forms of a case are interleaved in one run.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from tests.checkout import ROOT
from tests.engine import environment, installs, runs, test_cache

from .engine import header, large_models
from .engine_cases.workers import Place, Worker, started
from .timing import Case, Timing, measure, wall_clock

Form = Callable[[], object]
# The tests' caches in a real model's size.
vars(test_cache).update(HEADS=8, DIM=64)
# Both are a package of this process.
BEFORE, AFTER = "runtime_before", "runtime_after"
LONGEST, BUDGET = 512, 60


def loaded(name: str, checkout: Path) -> None:
    """Make a checkout's runtime importable under a name."""
    folder = checkout / "patches" / "runtime"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ValueError(f"expected a checkout with a runtime, found {checkout}")
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


def part(runtime: str, name: str) -> Any:
    """A module of one of the runtimes."""
    return importlib.import_module(f"{runtime}.{name}")


def ngram(runtime: str, length: int, vocabulary: int) -> Form:
    """A step of one request with an n-gram drafter, whose text grows by a token per call."""
    more = 20_000
    text = np.random.default_rng(0).integers(0, vocabulary, length + more).astype(np.int32)
    batch = SimpleNamespace(token_ids_cpu=text[None], num_tokens_no_spec=[length], req_ids=["0"])
    drafter = SimpleNamespace(min_n=1, max_n=3)
    runner = SimpleNamespace(input_batch=batch, drafter=drafter, max_model_len=length + more)
    counters = part(runtime, "counters").Counters(torch.device("cpu"))
    settings = part(runtime, "config").Settings(32)
    engine = part(runtime, "engine").Engine(settings, 7, counters, lambda _: None)
    trie_of = part(runtime, "v1.ngram").trie_of

    def step() -> object:
        batch.num_tokens_no_spec[0] += 1
        return trie_of(engine, runner, [[1] * 7], [True])

    return step


def rows(runtime: str, place: test_cache.Put) -> Form:
    """Reading one layer's keys and values of a request for its attention, packed as for tiles."""
    layer, _, _ = test_cache.filled(place, torch.bfloat16)
    # As many blocks as 1,024 tokens have; what is in them does not matter.
    blocks = 1024 // test_cache.BLOCK
    layer.kv_cache = layer.kv_cache.repeat(-(-blocks // len(layer.kv_cache)), 1, 1, 1)
    cache = part(runtime, "cache").look_at(layer)
    table = torch.arange(blocks, dtype=torch.int32)[None]
    return partial(cache.of_blocks, table, [1024])


def apart() -> Iterator[Case]:
    """What can be timed without an engine."""
    for words, length, vocabulary in (
        ("8k repeated tokens", 8192, 1),
        ("128k repeated tokens", 131_072, 1),
        ("128k random tokens", 131_072, 50_000),
    ):
        forms = {name: ngram(name, length, vocabulary) for name in (BEFORE, AFTER)}
        yield Case("n-gram tree", words, forms)
    for place in (test_cache.tiles, test_cache.pairs):
        forms = {name: rows(name, place) for name in (BEFORE, AFTER)}
        yield Case("bfloat16 cache of a layer", f"{place.__name__}, 1,024 tokens", forms)


def patched(checkout: Path, folder: Path) -> Path:
    """The interpreter of an environment whose vLLM a checkout's ddtree patched."""
    private = installs.environment(environment.engine_python(), folder)
    subprocess.run(
        [sys.executable, "-m", "ddtree", "patch", str(folder), "--apply", "--yes"],
        env={
            **os.environ,
            # Before the ddtree that is installed here.
            "PYTHONPATH": str(checkout / ".src"),
            "DDTREE_STATE": str(folder.parent / f"state-{folder.name}"),
        },
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return private


@dataclass(slots=True)
class Requests:
    """Requests of so many tokens, in one engine."""

    worker: Worker
    prompts: list[list[int]]
    tokens: int
    # Tokens of a step and request in which all of them decode.
    emitted: float = 0.0

    def __call__(self) -> None:
        """Run a pass."""
        sampling = {"temperature": 0.0, "max_tokens": self.tokens, "ignore_eos": True}
        found = self.worker.ask(prompts=self.prompts, sampling=sampling)["emitted"]
        self.emitted = sum(found) / len(found) / len(self.prompts)


def engines(
    stack: ExitStack, checkout: Path, model: dict[str, Any], lengths: tuple[int, ...], tokens: int
) -> Iterator[Case]:
    """Whole engines with trees, before and after, and the stock chain's.

    Args:
        stack: ends them.
        checkout: how it was before.
        model: arguments of `LLM`.
        lengths: of the prompts beside the one that is at the end of the context, or is not.
        tokens: of each request.
    """
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    old, new = patched(checkout, scratch / "old"), patched(ROOT, scratch / "new")
    given = runs.engine(max_num_batched_tokens=2048, max_model_len=LONGEST, **model)
    given["enable_prefix_caching"] = False
    trees = {**given, **runs.trees(BUDGET)}
    place = Place(old, new, threads=1)
    stock = Place(environment.engine_python(), new, threads=1)
    workers = {
        BEFORE: stack.enter_context(started(place, scratch / "1", trees, patched=False)),
        AFTER: stack.enter_context(started(place, scratch / "2", trees, patched=True)),
        "stock chain": stack.enter_context(started(stock, scratch / "3", given, patched=False)),
    }
    others = runs.prompts(lengths, seed=3)
    for words, length in (("at the end", LONGEST - tokens - 5), ("in the middle", LONGEST // 2)):
        prompts = others + runs.prompts((length,), seed=4)
        forms = {name: Requests(worker, prompts, tokens) for name, worker in workers.items()}
        yield Case(f"{len(others)} requests", f"beside one {words} of the context", forms)


def tiny() -> tuple[dict[str, Any], tuple[int, ...], int]:
    """The tiny model, whose rows cost next to nothing."""
    return runs.dflash(), (5, 20, 33, 47, 64, 31, 90), 40


def large() -> tuple[dict[str, Any], tuple[int, ...], int]:
    """The model of 101 million parameters, which drafts for itself and so never errs."""
    target = str(large_models(environment.engine_python()) / "target")
    drafter = {"method": "draft_model", "model": target, "num_speculative_tokens": 7}
    return {"model": target, "speculative_config": drafter}, (5, 20, 33), 24


def line(case: Case, timing: Timing) -> str:
    """A row of the table."""
    low, middle, high = (f"{1e3 * value:.3g}" for value in timing.quartiles())
    what, form = f"{case.unit}, {case.label}", timing.form.removeprefix("runtime_")
    took = f"{middle} ms | {low} to {high} | {timing.speedup():.3g}x"
    tokens = getattr(case.forms[timing.form], "emitted", None)
    return f"| {what} | {form} | {took} | {'' if tokens is None else f'{tokens:.2f}'} |"


def report(case: Case, budget: float, rounds: int) -> None:
    """Time a case and print its rows."""
    for timing in measure(case, wall_clock, budget, rounds):
        print(line(case, timing), flush=True)


def main(argv: list[str] | None = None) -> int:
    """Parse, time, print as the figures come; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before", description=__doc__)
    parser.add_argument("checkout", type=Path, help="a work tree of the commit to compare with")
    parser.add_argument("--rounds", type=int, default=10, help="of each case (default 10)")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    loaded(BEFORE, options.checkout.resolve())
    loaded(AFTER, ROOT)
    for text in header(1):
        print(f"- {text}")
    print("\n| case | form | median | quartiles | as fast | tokens |\n|---|---|---|---|---|---|")
    for case in apart():
        report(case, 1.0, options.rounds)
    for model in (tiny, large):
        with ExitStack() as stack:
            for case in engines(stack, options.checkout.resolve(), *model()):
                report(case, 0.0, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
