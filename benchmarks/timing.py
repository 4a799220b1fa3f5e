"""Time several forms of one computation side by side, interleaved in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Form = Callable[[], object]
# Calls a form a number of times; returns the seconds that took.
Clock = Callable[[Form, int], float]

# A sample lasts at least so long that the clock's own resolution and cost do not show.
SAMPLE_SECONDS = 0.0005
MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Case:
    """One computation in several forms that give the same result.

    Attributes:
        unit: the unit's folder name under `kernels/tree`.
        label: the sizes, such as `"R=64 N=64 D=7 K=64"`.
        forms: form name to a call without arguments; the first form is the baseline, and the
            inputs are made before the call so that only the computation is timed.
        bytes_moved: the bytes that any form has to read and write, 0 where it does not matter.
    """

    unit: str
    label: str
    forms: Mapping[str, Form]
    bytes_moved: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """One form's samples in seconds per call, with the baseline's of the same rounds."""

    form: str
    seconds: tuple[float, ...]
    baseline: tuple[float, ...]

    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile in seconds."""
        return quartiles(self.seconds)

    def speedup(self) -> float:
        """How many times as fast as the baseline: the median over rounds of the paired ratio.

        Both samples of a round are taken within moments of each other, so a load that comes and
        goes on a shared machine falls out of the ratio.
        """
        pairs = zip(self.baseline, self.seconds, strict=True)
        return statistics.median(base / own for base, own in pairs)


def quartiles(values: tuple[float, ...]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile, interpolated between the values.

    Raises:
        ValueError: if there is no value.
    """
    if not values:
        raise ValueError("quartiles: expected at least one value, found none")
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def wall_clock(form: Form, calls: int) -> float:
    """Seconds on the host's monotonic clock."""
    start = time.perf_counter()
    for _ in range(calls):
        form()
    return time.perf_counter() - start


def measure(case: Case, clock: Clock, budget: float, least_rounds: int = 10) -> list[Timing]:
    """Time every form of `case` once per round, for about `budget` seconds.

    The order of the forms rotates from round to round, so none always runs on the caches that
    the same neighbour left. Every form runs twice untimed: once to warm up, once to find how
    many calls make a sample.

    Args:
        budget: seconds; exceeded only where `least_rounds` rounds take longer.
        least_rounds: rounds that are always taken.
    """
    calls = {}
    for name, form in case.forms.items():
        clock(form, 1)
        calls[name] = calls_per_sample(clock(form, 1))
    names = list(case.forms)
    samples: dict[str, list[float]] = {name: [] for name in names}
    spent, rounds = 0.0, 0
    while rounds < least_rounds or (spent < budget and rounds < MOST_ROUNDS):
        first = rounds % len(names)
        for name in names[first:] + names[:first]:
            seconds = clock(case.forms[name], calls[name])
            samples[name].append(seconds / calls[name])
            spent += seconds
        rounds += 1
    baseline = tuple(samples[names[0]])
    return [Timing(name, tuple(samples[name]), baseline) for name in names]


def calls_per_sample(seconds: float) -> int:
    """Calls that fill a sample, for a form that takes `seconds` per call."""
    return max(1, round(SAMPLE_SECONDS / max(seconds, 1e-7)))
