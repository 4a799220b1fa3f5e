"""The arithmetic of `benchmarks/timing.py`; no test here depends on how fast anything is."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "timing.py"


def load() -> ModuleType:
    """The module by its path: `benchmarks` is run from a checkout and is in no package."""
    spec = importlib.util.spec_from_file_location("benchmarks_timing", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # `dataclass` looks up the module of the class that it decorates.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


timing: Any = load()


class Bench:
    """Forms that take a stated number of seconds on a clock that only they advance."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def form(self, name: str, seconds: float) -> Any:
        def call() -> float:
            self.calls.append(name)
            return seconds

        return call

    def clock(self, form: Any, calls: int) -> float:
        return float(sum(form() for _ in range(calls)))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((3.0,), (3.0, 3.0, 3.0)),
        ((1.0, 2.0), (1.25, 1.5, 1.75)),
        ((5.0, 1.0, 3.0), (2.0, 3.0, 4.0)),
        ((1.0, 2.0, 3.0, 4.0, 100.0), (2.0, 3.0, 4.0)),
    ],
)
def test_quartiles(values: tuple[float, ...], expected: tuple[float, float, float]) -> None:
    assert timing.quartiles(values) == pytest.approx(expected)


def test_quartiles_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        timing.quartiles(())


def test_speedup_pairs_the_samples_of_a_round() -> None:
    # The machine slows down and recovers; the ratio of the medians would say 0.5.
    own = timing.Timing("own", (1.0, 4.0, 1.0, 4.0, 4.0), (2.0, 8.0, 2.0, 8.0, 2.0))
    assert own.speedup() == pytest.approx(2.0)


def test_speedup_below_one_is_a_slowdown() -> None:
    assert timing.Timing("own", (2.0, 2.0), (1.0, 1.0)).speedup() == pytest.approx(0.5)


def test_speedup_refuses_samples_without_a_partner() -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        timing.Timing("own", (1.0, 2.0), (1.0,)).speedup()


@pytest.mark.parametrize(
    ("seconds", "calls"), [(0.0, 5000), (1e-6, 500), (0.00025, 2), (0.0005, 1), (3.0, 1)]
)
def test_calls_per_sample(seconds: float, calls: int) -> None:
    assert timing.calls_per_sample(seconds) == calls


def test_measure_interleaves_the_forms_and_rotates_their_order() -> None:
    bench = Bench()
    forms = {name: bench.form(name, 1.0) for name in "abc"}
    timing.measure(timing.Case("unit", "label", forms), bench.clock, budget=0.0, least_rounds=4)
    warm_up, rounds = bench.calls[:6], "".join(bench.calls[6:])
    assert sorted(warm_up) == list("aabbcc")
    assert rounds == "abc" + "bca" + "cab" + "abc"


def test_measure_gives_seconds_per_call_and_the_ratio_to_the_first_form() -> None:
    bench = Bench()
    forms = {"slow": bench.form("slow", 0.002), "fast": bench.form("fast", 0.0001)}
    case = timing.Case("unit", "label", forms)
    slow, fast = timing.measure(case, bench.clock, budget=0.0, least_rounds=3)
    assert [slow.form, fast.form] == ["slow", "fast"]
    assert slow.seconds == pytest.approx((0.002,) * 3)
    assert fast.seconds == pytest.approx((0.0001,) * 3)
    assert slow.speedup() == pytest.approx(1.0)
    assert fast.speedup() == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("budget", "least", "rounds"), [(0.0, 3, 3), (7.5, 3, 8), (1e9, 3, 200), (0.5, 1, 1)]
)
def test_measure_stops_when_the_budget_is_spent(budget: float, least: int, rounds: int) -> None:
    bench = Bench()
    case = timing.Case("unit", "label", {"only": bench.form("only", 1.0)})
    (only,) = timing.measure(case, bench.clock, budget, least)
    assert len(only.seconds) == rounds


def test_wall_clock_calls_as_often_as_asked_and_never_runs_backwards() -> None:
    bench = Bench()
    assert timing.wall_clock(bench.form("form", 0.0), 3) >= 0.0
    assert bench.calls == ["form"] * 3
