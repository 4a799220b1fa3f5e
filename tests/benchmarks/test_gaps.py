"""Gaps in units of the last place, and where two runs part."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .load import load

gaps: Any = load("engine_cases.gaps")
passes: Any = load("engine_cases.passes")


@pytest.mark.parametrize("value", [1.0, 1.9921875, 2.0, 0.75, -3.0, 300.0, 1e-3])
def test_ulp_is_the_distance_to_the_next_bfloat16(value: float) -> None:
    number = torch.tensor(abs(value), dtype=torch.bfloat16)
    bits = number.view(torch.int16) + 1
    after = bits.view(torch.bfloat16)
    assert gaps.ulp(float(number)) == float(after.double() - number.double())
    assert gaps.ulp(-float(number)) == gaps.ulp(float(number))


def test_ulp_of_nothing() -> None:
    assert gaps.ulp(0.0) == 0.0


def run(tokens: list[list[int]], scores: list[Any]) -> Any:
    """A pass of these tokens and scores."""
    return passes.Pass(tokens, scores, [], [], [])


def test_partings_give_the_other_runs_gap() -> None:
    close, wide = [(5, 1.0), (6, 1.0 - 2**-7)], [(5, 2.0), (6, 1.0)]
    plain = run([[5, 5, 5], [5, 5, 5]], [[wide, close, wide], [wide, wide, wide]])
    other = run([[5, 6, 9], [5, 5, 5]], [[wide, close, wide], [wide, wide, wide]])
    (parting,) = gaps.partings(other, plain)
    assert (parting.request, parting.place, parting.gap) == (0, 1, 1.0)
    assert list(gaps.partings(plain, plain)) == []
    assert gaps.gaps(plain) == [64.0, 1.0, 64.0, 64.0, 64.0, 64.0]
    # The text behind the parting token is still the same; what follows it is not.
    assert list(gaps.shared(other, plain)) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


def test_distances_compare_the_tokens_that_both_report() -> None:
    plain = run([[5]], [[[(5, 1.0), (6, 0.5)]]])
    other = run([[5]], [[[(5, 1.0 + 2**-7), (7, 0.9)]]])
    assert gaps.distances(other, plain) == [1.0]
    assert gaps.distances(plain, plain) == [0.0]


def test_scores_have_to_be_asked_for() -> None:
    with pytest.raises(ValueError, match="without"):
        gaps.gaps(run([[5]], [None]))
