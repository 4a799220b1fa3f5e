"""Requests of all kinds in one batch: sampled ones take trees, some are chains by necessity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import runs

Run = Callable[..., dict[str, Any]]

PROMPTS = runs.prompts((5, 20, 33, 47, 64, 90, 31, 100), seed=5)


def batch(prompts: list[list[int]], sampling: list[dict[str, Any]]) -> dict[str, Any]:
    """A pass with the given parameters, one request each."""
    common = {"ignore_eos": True, "max_tokens": 80}
    return {"prompts": prompts, "sampling": [{**common, **given} for given in sampling]}


def test_half_of_the_batch_is_sampled(run: Run) -> None:
    """Greedy requests stay greedy beside sampled ones; a seed gives the same draws again."""
    sampled = {"temperature": 0.8, "top_k": 20, "top_p": 0.95}
    half = [
        {"temperature": 0.0} if line % 2 else {**sampled, "seed": line}
        for line in range(len(PROMPTS))
    ]
    greedy = [{"temperature": 0.0}] * len(PROMPTS)
    tree = runs.engine(**runs.dflash(), **runs.trees(24))
    results = run(
        {
            "plain": {"engine": runs.engine(), "passes": [batch(PROMPTS, greedy)]},
            "tree": {
                "engine": tree,
                "passes": [batch(PROMPTS, half), batch(PROMPTS, half)],
                "counters": True,
            },
        }
    )
    truth = runs.tokens(results["plain"]["passes"][0])
    first, second = (runs.tokens(one) for one in results["tree"]["passes"])
    assert first[1::2] == truth[1::2]
    assert first == second
    for mine, theirs in zip(first[::2], truth[::2], strict=True):
        assert len(mine) == len(theirs)
        assert mine != theirs
    assert results["tree"]["counters"]["branches"] > 20
    assert results["tree"]["counters"]["fallbacks"] == {}


def test_requests_that_cannot_take_a_tree_are_chains(run: Run) -> None:
    """What reads the preceding rows as the prefix is verified as a chain, alone, and counted."""
    kinds: dict[str, dict[str, Any]] = {
        "repetition penalty": {"repetition_penalty": 1.3},
        "presence penalty": {"presence_penalty": 0.5},
        "frequency penalty": {"frequency_penalty": 0.5},
        "min_tokens": {"min_tokens": 40, "stop_token_ids": list(range(0, 512, 3))},
        "allowed token ids": {"allowed_token_ids": list(range(0, 512, 2))},
    }
    sampling = [{"temperature": 0.0, **given} for given in kinds.values()]
    sampling += [{"temperature": 0.0}] * (len(PROMPTS) - len(sampling))
    one = batch(PROMPTS, sampling)
    tree = runs.engine(**runs.dflash(), **runs.trees(24))
    chain = runs.engine(**runs.dflash())
    results = run(
        {
            "plain": {"engine": runs.engine(), "passes": [one]},
            "chain": {"engine": chain, "passes": [one]},
            "tree": {"engine": tree, "passes": [one], "counters": True},
        }
    )
    assert results["chain"]["passes"] == results["plain"]["passes"]
    assert results["tree"]["passes"] == results["plain"]["passes"]
    counters = results["tree"]["counters"]
    assert set(counters["fallbacks"]) == set(kinds)
    assert all(count >= 5 for count in counters["fallbacks"].values())
    assert counters["branches"] > 10
