"""Run engines and say what they produced; nothing is judged here."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

from . import events, importing, nodes, plan, prompts, runners, worker
from .host import TREE_FREE, Host
from .plan import Case, Job

PARTS = ("mask", "positions", "commit")
TREES_KEPT = 12


class Truth:
    """What decoding without speculation gives; written by the first engine, read by the others."""

    def __init__(self, folder: Path) -> None:
        """Read what there is."""
        self.path = folder / "truth.json"
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.prompts: list[list[int]] = known.get("prompts", [])
        self.tokens: list[list[int]] = known.get("tokens", [])

    def save(self) -> None:
        """Write it for the processes that come."""
        self.path.write_text(json.dumps({"prompts": self.prompts, "tokens": self.tokens}))

    def after(self, kept: int) -> list[list[int]]:
        """The prompts, each with `kept` tokens of its continuation."""
        pairs = zip(self.prompts, self.tokens, strict=True)
        return [prompt + tokens[:kept] for prompt, tokens in pairs]


def run(job: Job, folder: Path, part: str) -> None:
    """Run all engines, or the one that `part` names; an engine that fails is an event."""
    if part == plan.TOGETHER and not importing.run(job, folder, part):
        return
    runners.refuse_without_triton(job)
    job = runners.settled(job, folder)
    import torch

    gpu = torch.cuda.is_available()
    events.emit("runner", runner=job["runner"], interpreted=job["runner"] == "v2" and not gpu)
    truth = Truth(folder)
    if not truth.prompts:
        truth.prompts = prompts.of(job)
        truth.save()
    lengths = [len(tokens) for tokens in truth.prompts]
    every = plan.cases(job, folder, lengths, gpu=gpu)
    if part == plan.TOGETHER:
        together(job, truth, every)
        return
    (case,) = (case for case in every if case.name == part)
    if not truth.tokens and case.role != "plain":
        raise events.Unable("there is nothing to compare with: decoding without speculation failed")
    host = started(job, case)
    first(job, truth, host)
    if case.role in ("chain", "width1", "tree"):
        rounds = len(plan.segments(job)[0])
        events.progress(f"timing steps: {case.name}; {plan.left(job, case.name)}")
        finish(host, [segment(job, truth, host, number) for number in range(rounds)])
    else:
        finish(host, [])


def together(job: Job, truth: Truth, cases: list[Case]) -> None:
    """Run the engines side by side, and time those that draft in turns."""
    hosts = []
    for case in cases:
        host = _attempt(case, lambda case=case: started(job, case))
        if host is None:
            if case.role == "plain":
                return
            continue
        if _attempt(case, lambda host=host: first(job, truth, host)) is None:
            if case.role == "plain":
                # There is nothing that the others could be compared with.
                return
            continue
        hosts.append(host)
    timed = [host for host in hosts if host.case.role in ("chain", "width1", "tree")]
    found: dict[str, list[dict[str, Any]]] = {host.case.name: [] for host in timed}
    rounds = len(plan.segments(job)[0])
    for number in range(rounds):
        events.progress(f"timing steps, round {number + 1} of {rounds}")
        # Whoever comes first in a round comes last in the next.
        for host in timed if number % 2 else reversed(timed):
            found[host.case.name].append(segment(job, truth, host, number))
    for host in hosts:
        finish(host, found.get(host.case.name, []))


def _attempt(case: Case, action: Any) -> Any:
    try:
        return action()
    # Whatever a target's engine raises is the finding.
    except Exception as failure:  # noqa: BLE001
        if not isinstance(failure, events.Unable):
            traceback.print_exc()
        events.emit("failed", part=case.name, reason=events.reason(failure))
        return None


def started(job: Job, case: Case) -> Host:
    """Start an engine."""
    events.progress(f"starting an engine: {case.name}; {plan.left(job, case.name)}")
    return Host(case, job["runner"])


def first(job: Job, truth: Truth, host: Host) -> bool:
    """The passes of an engine that are not timed."""
    _say(job, host, "")
    passes = {"plain": plainly, "oracle": with_oracle}.get(host.case.role, drafted)
    passes(job, truth, host)
    return True


def plainly(job: Job, truth: Truth, host: Host) -> None:
    """Decode without speculation, with the gap between the two best tokens at every position."""
    host.call(worker.ask, gaps={})
    truth.tokens = host.generate(truth.prompts, job["tokens"])
    gaps = host.call(worker.seen, "gaps")
    host.call(worker.ask, gaps=None)
    found = []
    for prompt, tokens in zip(truth.prompts, truth.tokens, strict=True):
        texts = (tuple(prompt + tokens[:kept]) for kept in range(len(tokens)))
        found.append([gaps[text] for text in texts])
    config = host.llm.llm_engine.vllm_config
    events.emit(
        "truth",
        lengths=[len(prompt) for prompt in truth.prompts],
        tokens=truth.tokens,
        gaps=found,
        dtype=str(config.model_config.dtype).removeprefix("torch."),
        model=config.model_config.model,
    )
    truth.save()
    _again(job, truth, host)


def drafted(job: Job, truth: Truth, host: Host) -> None:
    """Decode with a drafter, one request beside the others without a tree; then continue."""
    trees = bool(host.case.budget)
    more = [truth.prompts[-1]] if trees else []
    extra: list[dict[str, Any]] = [{}] * len(truth.prompts) + [TREE_FREE] * len(more)
    _pass(host, "whole", 0, host.generate(truth.prompts + more, job["tokens"], extra), free=trees)
    _again(job, truth, host)


def with_oracle(job: Job, truth: Truth, host: Host) -> None:
    """Decode with trees that hide the truth, several times; then without parts of the runtime."""
    nodes_, seed, tokens = host.case.budget, job["seed"], job["tokens"]
    known = truth.after(tokens)
    host.call(worker.place)
    _silent(truth, host, tokens)
    host.call(worker.tell, known, nodes_, seed)
    host.call(worker.ask, trees=[], every=5, most=TREES_KEPT)
    more: list[dict[str, Any]] = [*[{}] * len(truth.prompts), TREE_FREE]
    found = host.generate([*truth.prompts, truth.prompts[-1]], tokens, more)
    _pass(host, "whole", 0, found, free=True)
    for _ in range(2):
        _again(job, truth, host)
    host.settle()
    captured = host.call(worker.seen, "trees")
    events.emit("nodes", without=None, **nodes.compared(host, captured))
    for number, part in enumerate(PARTS):
        _say(job, host, f" without {part}, which has to go wrong")
        host.forget()
        host.call(worker.tell, known, nodes_, seed + 1 + number)
        host.call(worker.leave_out, [part])
        host.call(worker.ask, trees=[], every=3, most=TREES_KEPT)
        found = host.generate([*truth.prompts, truth.prompts[-1]], min(tokens, 48), more)
        _pass(host, f"without {part}", 0, found, free=True, without=part)
        captured = host.call(worker.seen, "trees")
        host.call(worker.leave_out, [])
        events.emit("nodes", without=part, **nodes.compared(host, captured))
    host.forget()


def segment(job: Job, truth: Truth, host: Host, number: int) -> dict[str, Any]:
    """One timed stretch of every continuation."""
    offsets, length = plan.segments(job)
    found = host.timed(truth.after(offsets[number]), length)
    _pass(host, f"stretch {number + 1}", offsets[number], found.pop("tokens"))
    return found


def finish(host: Host, timed: list[dict[str, Any]]) -> None:
    """Say what was counted in an engine, and end it."""
    block = host.llm.llm_engine.vllm_config.cache_config.block_size
    events.emit(
        "engine",
        name=host.case.name,
        role=host.case.role,
        budget=host.case.budget,
        eager=bool(host.case.engine.get("enforce_eager")),
        block=block,
        start_seconds=host.start_seconds,
        preemptions=_preemptions(host),
        stretches=timed,
        **host.counted(),
    )
    host.close()


def _preemptions(host: Host) -> int | None:
    # Of several engines in a process, vLLM's own counters are those of the last one.
    found = host.metric("vllm:num_preemptions") if host.case.role == "oracle" else None
    return None if found is None else int(found)


def _say(job: Job, host: Host, how: str) -> None:
    events.progress(f"decoding: {host.case.name}{how}; {plan.left(job, host.case.name)}")


def _silent(truth: Truth, host: Host, tokens: int) -> None:
    """Decode in a patched engine while its drafter says nothing."""
    _pass(host, "no drafts", 0, host.generate(truth.prompts, tokens), silent=True)
    host.forget()


def _again(job: Job, truth: Truth, host: Host) -> None:
    """Continue after five eighths, on blocks that the pass before wrote."""
    _say(job, host, ", continued")
    kept = job["tokens"] * 5 // 8
    found = host.generate(truth.after(kept), job["tokens"] - kept)
    _pass(host, "continued", kept, found)


def _pass(
    host: Host,
    name: str,
    offset: int,
    tokens: list[list[int]],
    *,
    free: bool = False,
    silent: bool = False,
    without: str | None = None,
) -> None:
    """Emit the tokens of a pass.

    Args:
        host: the engine.
        name: of the pass.
        offset: tokens of the truth that the prompts had already.
        tokens: of each request.
        free: the last request repeats the last prompt, and takes no tree.
        silent: no request has drafts.
        without: a part of the runtime that was switched off.
    """
    events.emit(
        "pass",
        engine=host.case.name,
        name=name,
        offset=offset,
        tokens=tokens,
        free=free,
        silent=silent,
        without=without,
    )
