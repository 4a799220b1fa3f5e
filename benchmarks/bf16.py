"""Find out why trees leave greedy decoding in bfloat16; run as `python -m benchmarks.bf16`.

Three questions. At the first token that differs from no speculation, how far ahead was the best
logit, beside its lead everywhere else? Are the tree's logits further from float64 than those of no
speculation and of the stock chain? And is the tree's attention less exact than the engine's own?
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tests.engine import environment, installs, runs

from .engine import header, large_models, prompts
from .engine_cases import gaps
from .engine_cases.forms import PLAIN, Form, Workload, arguments, calibration
from .engine_cases.passes import Pass
from .engine_cases.workers import FAR, Place, started
from .timing import quartiles

# Requests decode eight at a time.
REQUESTS, TOKENS, TOGETHER = 24, 160, 8
DEEP = 31

HEAD = (
    "| form | leave greedy | gap there, ulp | logits equal | off no speculation | off float64 "
    "| not the exact argmax |",
    "|---|---|---|---|---|---|---|",
)


def forms() -> Iterator[Form]:
    """No speculation, then chains and trees; all drafts are the calibrated proposer's."""
    yield Form(PLAIN, patched=False, drafts=False)
    yield Form("stock chain of 7", patched=False)
    yield Form(f"stock chain of {DEEP}", patched=False, depth=DEEP)
    yield Form("chain-shaped tree of 7", patched=True, settings={"budget": 7})
    for budget in (DEEP, 60):
        yield Form(f"tree of {budget}", patched=True, nodes=budget, settings={"budget": budget})


def engine(workload: Workload, form: Form) -> dict[str, Any]:
    """Arguments of `LLM` that let it report raw logits."""
    return {
        **arguments(workload, form),
        "max_num_seqs": TOGETHER,
        "num_gpu_blocks_override": 192,
        "logprobs_mode": "raw_logits",
    }


def decode(
    place: Place, folder: Path, workload: Workload, known: list[list[int]]
) -> Iterator[Pass]:
    """One pass of every form; what the first generates is appended to `known`."""
    asked = prompts(workload)
    sampling = {**workload.sampling(), "logprobs": 20}
    for number, form in enumerate(forms()):
        scratch = folder / str(number)
        scratch.mkdir()
        given = calibration(workload, form, known)
        (scratch / "calibrated.json").write_text(json.dumps(given))
        print(f"running: {form.name}", file=sys.stderr)
        with started(place, scratch, engine(workload, form), patched=form.patched) as worker:
            one = Pass(**worker.ask(prompts=asked, sampling=sampling))
        if not known:
            known += [text + tokens for text, tokens in zip(asked, one.tokens, strict=True)]
        yield one


def exact_logits(place: Place, folder: Path, target: str, texts: list[list[int]]) -> Any:
    """Float64 logits of every text, by `far/exact.py`: a list of tensors [tokens, V]."""
    asked, answer = folder / "texts.json", folder / "logits.pt"
    asked.write_text(json.dumps(texts))
    command = [str(place.stock), str(FAR / "exact.py"), target, str(asked), str(answer)]
    subprocess.run(command, env=place.variables(), check=True)
    return torch.load(answer)


def off_exact(run: Pass, plain: Pass, exact: list[torch.Tensor], starts: list[int]) -> list[float]:
    """Root mean square error of a run's logits at every shared place, in ulp."""
    found = []
    for request, place in gaps.shared(run, plain):
        line = exact[request][starts[request] + place - 1]
        mine = gaps.scores(run, request)[place]
        off = [score - float(line[token]) for token, score in mine]
        found.append(gaps.root_mean_square(off) / gaps.ulp(mine[0][1]))
    return found


def wrong(run: Pass, plain: Pass, exact: list[torch.Tensor], starts: list[int]) -> tuple[int, int]:
    """Shared places whose token is not the exact argmax, and shared places."""
    places = list(gaps.shared(run, plain))
    best = [int(exact[request][starts[request] + place - 1].argmax()) for request, place in places]
    mine = [run.tokens[request][place] for request, place in places]
    return sum(one != other for one, other in zip(mine, best, strict=True)), len(places)


def line(name: str, run: Pass, plain: Pass, exact: list[torch.Tensor], starts: list[int]) -> str:
    """One form's row."""
    left = [parting.gap for parting in gaps.partings(run, plain)]
    off = gaps.distances(run, plain)
    missed, places = wrong(run, plain, exact, starts)
    cells = (
        name,
        f"{len(left)} of {len(run.tokens)}",
        f"{statistics.median(left):.1f}, at most {max(left):.1f}" if left else "",
        f"{100 * sum(value == 0 for value in off) / len(off):.1f} %",
        f"{statistics.median(off):.3f}",
        f"{statistics.median(off_exact(run, plain, exact, starts)):.3f}",
        f"{missed} of {places}",
    )
    return "| " + " | ".join(cells) + " |"


def ties(run: Pass) -> str:
    """How common a small gap is."""
    every = gaps.gaps(run)
    low, middle, high = quartiles(tuple(every))
    shares = ", ".join(
        f"at most {limit} ulp: {100 * sum(value <= limit for value in every) / len(every):.1f} %"
        for limit in (0, 1, 2, 4)
    )
    return (
        f"gaps of no speculation at all {len(every)} places: {shares}; "
        f"quartiles {low:.1f}, {middle:.1f}, {high:.1f} ulp"
    )


def attention(place: Place, folder: Path, workload: Workload, known: list[list[int]]) -> str:
    """The errors of the engine's attention and of the tree's, by `far/probe.py`."""
    form = Form("probe", patched=True)
    files = [folder / name for name in ("engine.json", "pass.json", "errors.json")]
    (folder / "calibrated.json").write_text(json.dumps(calibration(workload, form, known)))
    files[0].write_text(json.dumps(engine(workload, form)))
    asked = {"prompts": prompts(workload), "sampling": workload.sampling()}
    files[1].write_text(json.dumps(asked))
    command = [str(place.patched), str(FAR / "probe.py"), *map(str, files)]
    with (folder / "probe.log").open("wb") as log:
        subprocess.run(
            command, cwd=folder, env=place.variables(), stdout=log, stderr=log, check=True
        )
    found = json.loads(files[2].read_text())
    lines = [f"attention beside float64, {len(found)} calls of a verified chain, median:"]
    for kernel, words in (("engine", "the engine's kernel"), ("tree", "the tree's")):
        rms, largest, nearest = (
            statistics.median(call[kernel][name] for call in found)
            for name in ("rms", "largest", "nearest")
        )
        lines.append(
            f"  - {words}: error {rms:.5f} rms, {largest:.4f} at most, of the result's size; "
            f"{100 * nearest:.1f} % of the elements as near as bfloat16 allows"
        )
    return "\n".join(lines)


def report(place: Place, folder: Path, workload: Workload) -> str:
    """Everything about one model."""
    known: list[list[int]] = []
    passes = list(decode(place, folder, workload, known))
    exact = exact_logits(place, folder, workload.target, known)
    starts = [len(text) - workload.tokens for text in known]
    named = zip((form.name for form in forms()), passes, strict=True)
    rows = [line(name, run, passes[0], exact, starts) for name, run in named]
    return "\n".join(
        [
            f"**{workload.name}**, {workload.requests} requests of {workload.tokens} tokens",
            "",
            *HEAD,
            *rows,
            "",
            f"- {ties(passes[0])}",
            f"- {attention(place, folder, workload, known)}",
        ]
    )


def main(argv: list[str] | None = None) -> int:
    """Parse, run, print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bf16", description=__doc__)
    names = ("tiny", "large")
    parser.add_argument("--model", action="append", choices=names, help="only this (repeatable)")
    parser.add_argument("--tokens", type=int, default=TOKENS, help=f"default {TOKENS}")
    options = parser.parse_args(argv)
    python = environment.engine_python()
    for text in header(1):
        print(f"- {text}")
    with tempfile.TemporaryDirectory() as scratch:
        place = Place(python, installs.patched(python, Path(scratch) / "patched"), 1)
        for name in options.model or names:
            target = runs.TARGET if name == "tiny" else str(large_models(python) / "target")
            size = runs.VOCABULARY if name == "tiny" else 12288
            workload = Workload(name, target, None, size, "bfloat16", REQUESTS, options.tokens)
            with tempfile.TemporaryDirectory() as folder:
                print(f"\n{report(place, Path(folder), workload)}", flush=True)
    print(f"load: {os.getloadavg()[0]:.1f} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
