"""What a pass of one form says: the cost of a step, tokens per second, the acceptance length."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ddtree.patches.verify.judge import cost

from .forms import Form, Workload
from .workers import Worker

Scores = list[list[tuple[int, float]]]


@dataclass(frozen=True, slots=True)
class Pass:
    """Figures of the steps in which every request of the batch decodes.

    Attributes:
        tokens: of every request, to the end.
        scores: per request and token the best (token, score), or None where they were not asked.
        seconds: of each step.
        processor: seconds that the engine's process worked in each step.
        emitted: tokens of each step, all requests together.
    """

    tokens: list[list[int]]
    scores: list[Scores | None]
    seconds: list[float]
    processor: list[float]
    emitted: list[int]

    def step(self) -> float:
        """Seconds of a step: the median, which a moment without the processor does not move."""
        return statistics.median(self.seconds)

    def work(self) -> float:
        """Processor seconds of a step, which other processes disturb less; the median."""
        return statistics.median(self.processor)

    def acceptance(self) -> float:
        """Tokens per step and request, the bonus token included."""
        return sum(self.emitted) / len(self.emitted) / len(self.tokens)

    def rate(self) -> float:
        """Tokens per second of the batch, at the median cost of a step."""
        return self.acceptance() * len(self.tokens) / self.step()


@dataclass(slots=True)
class Runner:
    """A form with its engine; calling it runs one pass and returns the seconds of a step."""

    form: Form
    workload: Workload
    worker: Worker
    prompts: list[list[int]]
    passes: list[Pass] = field(default_factory=list)

    def __call__(self) -> float:
        """Run one pass."""
        asked: dict[str, Any] = {"prompts": self.prompts, "sampling": self.workload.sampling()}
        self.passes.append(Pass(**self.worker.ask(**asked)))
        return self.passes[-1].step()


def ratios(own: Sequence[float], base: Sequence[float]) -> tuple[float, ...]:
    """How many times its partner's value of the same round each value is."""
    return tuple(mine / theirs for mine, theirs in zip(own, base, strict=True))


def sign_test(values: Sequence[float]) -> float:
    """Probability, two-sided, of so uneven a split above and below 1 if either were as likely.

    Values of exactly 1 are left out.
    """
    above, below = sum(value > 1 for value in values), sum(value < 1 for value in values)
    return cost.sign_test(above, above + below)
