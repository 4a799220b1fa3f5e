"""What a verification says: facts, levels with their checks, engines, costs, and one sentence."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Outcome(enum.StrEnum):
    """What became of a level or of one of its checks."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


class Verdict(enum.StrEnum):
    """What became of the whole: "incomplete" is passed as far as it went."""

    PASSED = "passed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


class Pays(enum.StrEnum):
    """Whether a tree gives more tokens per second than the same drafter's chain."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer.

    Attributes:
        vacuous: it failed because what was run could not have shown a mistake, and not because
            something was found wrong.
    """

    name: str
    outcome: Outcome
    detail: str
    vacuous: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """One level of proof; `reason` says why it was not run."""

    level: str
    claim: str
    outcome: Outcome
    reason: str
    checks: tuple[Check, ...]

    @property
    def proved_nothing(self) -> bool:
        """Whether it failed, and nothing was found wrong all the same."""
        wrong = [check for check in self.checks if check.outcome == Outcome.FAILED]
        return self.outcome == Outcome.FAILED and bool(wrong) and all(one.vacuous for one in wrong)


@dataclass(frozen=True, slots=True)
class Subject:
    """What was verified, where, and with what.

    Attributes:
        location: the folder that holds the `vllm` package.
        device: "cpu", or the name of the GPU.
        runner: the model runner of the engines, "v1" or "v2"; None if none was started.
        runner_asked: whether it was asked for; else it is what vLLM takes by itself.
        interpreted: whether Triton's interpreter ran the runner's kernels, so that times are none.
        model: "tiny" for the one that comes with ddtree.
    """

    target: str
    location: str
    vllm: str | None
    plan_id: str | None
    interpreter: str
    python: str
    torch: str
    triton: str | None
    device: str
    runner: str | None
    runner_asked: bool
    interpreted: bool
    model: str
    drafter: str | None
    method: str | None
    dtype: str
    budgets: tuple[int, ...]
    prompts: str
    tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine and what its timed stretches showed; None where it has none.

    Attributes:
        acceptance_length: tokens per verification of a request, the bonus token included.
        first_branch_length: the same for the chain of first branches of its trees.
        step_ms: median of the stretches' medians, in milliseconds.
        tokens_per_second: of all stretches.
        branches: accepted nodes that are not their parent's first child.
        fallbacks: verifications as chains, by reason.
    """

    name: str
    role: str
    budget: int
    acceptance_length: float | None
    first_branch_length: float | None
    verifications: int
    step_ms: float | None
    tokens_per_second: float | None
    branches: int
    fallbacks: Mapping[str, int]
    start_seconds: float


@dataclass(frozen=True, slots=True)
class Cost:
    """An engine with trees beside the stock chain of the same drafter, stretch by stretch.

    Attributes:
        pairs: stretches that both decoded.
        step_ratio: median of the ratios of the cost per step, tree to chain.
        step_p: two-sided sign test of these.
        rate_ratio: median of the ratios of tokens per second, tree to chain.
        rate_p: two-sided sign test of these.
        faster: stretches in which the tree gave more tokens per second.
        steps_saved: share of the chain's target steps per request that the tree does not need.
        interleaved: whether the engines took turns; else they ran one after another.
    """

    name: str
    budget: int
    pairs: int
    step_ratio: float
    step_p: float
    rate_ratio: float
    rate_p: float
    faster: int
    steps_saved: float
    interleaved: bool


@dataclass(frozen=True, slots=True)
class Report:
    """A verification.

    Attributes:
        imports: a check per edited module.
        pays: whether a tree pays, in one word; `sentence` says it in one sentence.
        rule: how outputs were compared.
        log: the last lines that the target printed, if something failed.
    """

    tool_version: str
    subject: Subject
    verdict: Verdict
    imports: tuple[Check, ...]
    levels: tuple[Level, ...]
    engines: tuple[Engine, ...]
    costs: tuple[Cost, ...]
    pays: Pays
    sentence: str
    rule: str
    seconds: float
    notes: tuple[str, ...]
    log: tuple[str, ...]
