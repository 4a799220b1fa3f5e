"""The forms of one engine that are timed side by side: arguments of vLLM's `LLM` for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BUDGETS = (7, 16, 32, 60)
DEPTH = 7
# Probabilities of the candidates' ranks; the chain's acceptance length is then about 2.4.
RANKS = (0.6, 0.12, 0.06, 0.04, 0.02, 0.02, 0.01, 0.01)


@dataclass(frozen=True, slots=True)
class Workload:
    """A model, its drafter and the requests that it decodes together.

    Attributes:
        name: for the heading.
        target: folder of the target.
        drafter: folder of a DFlash drafter, or None for the calibrated proposer.
        vocabulary: tokens of the target.
        dtype: of weights and cache.
        requests: decoded together.
        tokens: generated per request.
    """

    name: str
    target: str
    drafter: str | None
    vocabulary: int
    dtype: str
    requests: int
    tokens: int

    def sampling(self) -> dict[str, Any]:
        """Greedy, and as many tokens as asked for."""
        return {"temperature": 0.0, "max_tokens": self.tokens, "ignore_eos": True}


@dataclass(frozen=True, slots=True)
class Form:
    """One way of running a workload.

    Attributes:
        name: for the table.
        patched: in the patched vLLM, not in the installed one.
        drafts: with the drafter.
        nodes: the calibrated proposer's tree, 0 for its chain.
        depth: of the drafts.
        settings: the runtime's, or None where trees are not configured.
    """

    name: str
    patched: bool
    drafts: bool = True
    nodes: int = 0
    depth: int = DEPTH
    settings: dict[str, Any] | None = None


STOCK_CHAIN, PLAIN = "stock chain", "no speculation"
# The same as the baseline in another process: what differs by chance alone.
CONTROL = "stock chain, another process"
UNCONFIGURED, TREE_CHAIN = "patched, not configured", "chain-shaped tree"


def forms() -> Iterator[Form]:
    """Every form; the first is the baseline."""
    yield Form(STOCK_CHAIN, patched=False)
    yield Form(CONTROL, patched=False)
    yield Form(PLAIN, patched=False, drafts=False)
    yield Form(UNCONFIGURED, patched=True)
    # One child per node, as many nodes as the drafter is deep.
    yield Form(TREE_CHAIN, patched=True, settings={"budget": DEPTH, "max_siblings": 1})
    for budget in BUDGETS:
        yield Form(f"tree of {budget}", patched=True, nodes=budget, settings={"budget": budget})


def arguments(workload: Workload, form: Form) -> dict[str, Any]:
    """What `LLM` is made with."""
    made: dict[str, Any] = {
        "model": workload.target,
        "skip_tokenizer_init": True,
        "dtype": workload.dtype,
        "enforce_eager": True,
        "block_size": 32,
        "max_model_len": 512,
        "max_num_seqs": workload.requests,
        "max_num_batched_tokens": 1024,
        # Room for every request, and no more memory than that in each of many processes.
        "num_gpu_blocks_override": 128,
    }
    if form.drafts:
        made["speculative_config"] = {"num_speculative_tokens": form.depth, **drafter(workload)}
    if form.settings is not None:
        made["additional_config"] = {"ddtree": form.settings}
    return made


def drafter(workload: Workload) -> dict[str, Any]:
    """The workload's drafter in vLLM's words."""
    if workload.drafter is None:
        return {"method": "custom_class", "model": "calibrated.Calibrated"}
    return {"method": "dflash", "model": workload.drafter}


def calibration(workload: Workload, form: Form, known: list[list[int]]) -> dict[str, Any]:
    """What the calibrated proposer reads."""
    return {
        "known": known,
        "vocabulary": workload.vocabulary,
        "depth": form.depth,
        "nodes": form.nodes,
        "ranks": RANKS,
    }
