"""The arithmetic of passes: the cost of a step, ratios and the sign test."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binomtest

from .load import load

passes: Any = load("engine_cases.passes")


def test_figures_of_a_pass() -> None:
    one = passes.Pass(
        [[1] * 9, [2] * 9], [None, None], [0.1, 0.1, 9.0], [0.1, 0.05, 0.1], [4, 2, 6]
    )
    assert one.step() == 0.1
    assert one.work() == 0.1
    assert one.acceptance() == 2.0
    assert one.rate() == pytest.approx(40.0)


def test_ratios_need_partners() -> None:
    assert passes.ratios((2.0, 3.0), (1.0, 2.0)) == (2.0, 1.5)
    with pytest.raises(ValueError, match="shorter"):
        passes.ratios((2.0, 3.0), (1.0,))


@pytest.mark.parametrize(("above", "below"), [(0, 0), (5, 5), (10, 0), (0, 1), (9, 3), (4, 8)])
def test_sign_test_is_the_exact_binomial_test(above: int, below: int) -> None:
    values = [1.5] * above + [0.5] * below + [1.0] * 3
    total = above + below
    expected = binomtest(above, total).pvalue if total else 1.0
    assert passes.sign_test(values) == pytest.approx(expected)
