"""Above temperature 0 the tokens of a tree are draws from the target's own distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import chi2

from . import runs

Run = Callable[..., dict[str, Any]]

REQUESTS = 1500
TOKENS = 5
SAMPLING = {"temperature": 1.0, "top_k": 3, "max_tokens": TOKENS, "ignore_eos": True, "logprobs": 1}


def test_sampled_tokens_have_the_target_s_distribution(run: Run) -> None:
    """The first five tokens of one prompt, drawn many times, with trees and without drafts.

    Two samples are compared by a chi-square test of homogeneity; it fails by chance once in ten
    thousand runs, and the seeds are fixed.
    """
    (prompt,) = runs.prompts((24,), seed=9)
    sampling = [{**SAMPLING, "seed": seed} for seed in range(REQUESTS)]
    other = [{**SAMPLING, "seed": seed + REQUESTS} for seed in range(REQUESTS)]
    size = {"max_num_seqs": 64, "max_num_batched_tokens": 2048}
    tree = runs.engine(**runs.dflash(), **runs.trees(16), **size)
    results = run(
        {
            "plain": {
                "engine": runs.engine(**size),
                "passes": [{"prompts": [prompt] * REQUESTS, "sampling": other}],
            },
            "tree": {
                "engine": tree,
                "passes": [{"prompts": [prompt] * REQUESTS, "sampling": sampling}],
                "counters": True,
            },
        }
    )
    plain, tree_tokens = (runs.tokens(results[name]["passes"][0]) for name in ("plain", "tree"))
    counters = results["tree"]["counters"]
    assert counters["accepted"] > 200
    assert counters["branches"] > 50
    for last in range(1, TOKENS + 1):
        first = max(0, last - 2)
        assert_alike(
            [tuple(t[first:last]) for t in plain], [tuple(t[first:last]) for t in tree_tokens]
        )


def assert_alike(one: list[tuple[int, ...]], two: list[tuple[int, ...]]) -> None:
    """Chi-square test that two samples of the same size have one distribution; rare values join."""
    counts = [Counter(one), Counter(two)]
    values = sorted({value for count in counts for value in count})
    table = np.array([[count[value] for value in values] for count in counts], dtype=float)
    common = table.sum(0) >= 20
    rare = table[:, ~common].sum(1, keepdims=True)
    table = np.concatenate([table[:, common], rare], axis=1)
    table = table[:, table.sum(0) > 0]
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    bound = chi2.isf(1e-4 / TOKENS, table.shape[1] - 1)
    assert statistic < bound, f"{statistic:.1f} over {table.shape[1] - 1} degrees of freedom"
