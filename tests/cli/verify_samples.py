"""Verifications made by hand: what their renderers are tested on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ddtree.patches.verify.report import (
    Check,
    Cost,
    Engine,
    Level,
    Outcome,
    Pays,
    Report,
    Subject,
    Verdict,
)

from .samples import HOSTILE

CLAIMS = {
    "L1": "the walk and the builds are right",
    "L2": "the kernels are right",
    "L3": "every node saw exactly its ancestors",
    "L4": "a tree of width 1 is the stock chain",
    "L5": "the engine's output is greedy decoding",
}


def check(name: str, outcome: Outcome = Outcome.PASSED, detail: str = "12 cases") -> Check:
    return Check(name, outcome, detail)


def level(name: str, outcome: Outcome = Outcome.PASSED, reason: str = "", *checks: Check) -> Level:
    return Level(name, CLAIMS[name], outcome, reason, checks or (check("walk"), check("build")))


def subject(**changes: Any) -> Subject:
    known: dict[str, Any] = {
        "target": "/srv/env",
        "location": "/srv/env/lib/python3.11/site-packages",
        "vllm": "0.32.0",
        "plan_id": "05d7cf8268b7",
        "interpreter": "/srv/env/bin/python3.11",
        "python": "3.11.9",
        "torch": "2.13.0+cpu",
        "triton": None,
        "device": "cpu",
        "runner": "v1",
        "runner_asked": False,
        "interpreted": False,
        "model": "tiny",
        "drafter": "tiny",
        "method": "dflash",
        "dtype": "float32",
        "budgets": (7, 32),
        "prompts": "8 random prompts",
        "tokens": 96,
        "seed": 1,
    }
    return Subject(**{**known, **changes})


def engine(name: str, role: str, budget: int, **changes: Any) -> Engine:
    made = Engine(name, role, budget, 1.594, 1.245, 1419, 20.72, 189.4, 614, {"bad words": 3}, 5.1)
    return replace(made, **changes)


def passed(**changes: Any) -> Report:
    """Everything passed, and a tree does not pay."""
    plain = engine(
        "plain", "plain", 0, acceptance_length=None, first_branch_length=None,
        step_ms=None, tokens_per_second=None, branches=0, fallbacks={},
    )  # fmt: skip
    made = Report(
        tool_version="0.1.0",
        subject=subject(),
        verdict=Verdict.PASSED,
        imports=(check("vllm.config.vllm"), check("vllm.v1.worker.gpu_model_runner")),
        levels=tuple(level(name) for name in CLAIMS),
        engines=(
            plain,
            engine("chain", "chain", 0, first_branch_length=None, branches=0),
            engine("tree 32", "tree", 32),
        ),
        costs=(Cost("tree 32", 32, 12, 2.87, 0.00049, 0.31, 0.00049, 0, 0.2, True),),
        pays=Pays.NO,
        sentence="A tree does not pay here: budget 32 gives 0.31 times the tokens per second.",
        rule="In float32, every token has to be that of greedy decoding.",
        seconds=74.2,
        notes=(),
        log=(),
    )
    return replace(made, **changes)


def failed() -> Report:
    """The walk is wrong, a module does not import, and L4 was not run."""
    wrong = check("walk", Outcome.FAILED, "batches of trees number 3: found 1, expected 2")
    levels = {
        "L1": level("L1", Outcome.FAILED, wrong.detail, wrong, check("build")),
        "L4": Level("L4", CLAIMS["L4"], Outcome.NOT_RUN, "the stock chain does not run", ()),
        "L5": level("L5", Outcome.FAILED, "not greedy", check("preemption", Outcome.NOT_RUN)),
    }
    return passed(
        verdict=Verdict.FAILED,
        imports=(check("vllm.config.vllm", Outcome.FAILED, "ImportError: no"),),
        levels=tuple(levels.get(name, level(name)) for name in CLAIMS),
        engines=(),
        costs=(),
        notes=("Another ddtree applied the patch.",),
        log=("Traceback (most recent call last):", "ValueError: no"),
    )


def partial() -> Report:
    """Only L1 was asked for."""
    missing = tuple(
        Level(name, claim, Outcome.NOT_RUN, "not asked for", ())
        for name, claim in CLAIMS.items()
        if name != "L1"
    )
    return passed(
        verdict=Verdict.INCOMPLETE,
        levels=(level("L1"), *missing),
        engines=(),
        costs=(),
        pays=Pays.NOT_MEASURED,
        sentence="Whether a tree pays was not measured: L5 was not run.",
        rule="",
    )


def hostile() -> Report:
    """Every string that comes from the target holds markup, escapes and undecodable bytes."""
    bad = check(HOSTILE, Outcome.FAILED, HOSTILE)
    return passed(
        subject=subject(
            target=HOSTILE, location=HOSTILE, interpreter=HOSTILE, device=HOSTILE, model=HOSTILE,
            drafter=HOSTILE, vllm=HOSTILE, torch=HOSTILE, triton=HOSTILE, prompts=HOSTILE,
        ),
        verdict=Verdict.FAILED,
        imports=(bad,),
        levels=tuple(level(name, Outcome.FAILED, HOSTILE, bad) for name in CLAIMS),
        engines=(engine(HOSTILE, "tree", 7, fallbacks={HOSTILE: 1}),),
        costs=(Cost(HOSTILE, 7, 12, 1.0, 1.0, 1.0, 1.0, 6, 0.0, False),),
        sentence=HOSTILE,
        notes=(HOSTILE,),
        log=(HOSTILE,),
    )  # fmt: skip


REPORTS = {"passed": passed, "failed": failed, "partial": partial, "hostile": hostile}
