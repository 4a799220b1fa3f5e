"""Trees of real drafters: greedy output, and an acceptance length that a chain does not reach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import drafters, environment, runs

Run = Callable[..., dict[str, Any]]

PROMPTS = runs.prompts((5, 20, 33, 47, 64, 90, 31, 100), seed=3)
PASS = runs.greedy(PROMPTS, 160)
PLAIN = {"engine": runs.engine(), "passes": [PASS]}
# Without its model, which each test makes.
DRAFT_MODEL = {"method": "draft_model", "num_speculative_tokens": 4}
NGRAM = {
    "method": "ngram",
    "num_speculative_tokens": 4,
    "prompt_lookup_max": 3,
    "prompt_lookup_min": 1,
}


def with_trees(drafter: dict[str, Any], budget: int, **config: Any) -> runs.Case:
    """A case of one greedy pass with a drafter's trees."""
    engine = runs.engine(**drafter, **runs.trees(budget, **config))
    return {"engine": engine, "passes": [PASS], "counters": True}


def test_block_drafter(run: Run) -> None:
    """DFlash with best-first trees: the larger the budget, the longer the accepted path."""
    budgets = (7, 16, 32, 60)
    shapes: dict[str, dict[str, Any]] = {
        "spine": {"shape": "spine_first"},
        "leaves": {"shape": "siblings", "max_siblings": 2},
    }
    results = run(
        {
            "plain": PLAIN,
            "chain": {"engine": runs.engine(**runs.dflash()), "passes": [PASS]},
            **{str(n): with_trees(runs.dflash(), n) for n in budgets},
            **{name: with_trees(runs.dflash(), 16, **given) for name, given in shapes.items()},
            "flat": with_trees(runs.dflash(), 16, temperature=3.0),
        }
    )
    for name, result in results.items():
        assert result["passes"] == results["plain"]["passes"], name
    lengths = [runs.acceptance(results[name]) for name in ("chain", *map(str, budgets))]
    assert lengths == sorted(lengths), lengths
    assert lengths[-1] > lengths[0] + 0.2, lengths
    for budget in budgets:
        counters = results[str(budget)]["counters"]
        assert counters["branches"] > 20
        assert counters["fallbacks"] == {}
    # The spine is the drafter's chain, so its own acceptance is the chain's.
    spine = results["spine"]["counters"]
    assert spine["acceptance_length"] > spine["acceptance_length_chain"]
    assert results["leaves"]["counters"]["branches"] > 20


def test_ngram(run: Run) -> None:
    """Several matches merged: never less than vLLM's single match, which is the first branch."""
    ngram = {"speculative_config": NGRAM}
    # Once its n-gram code is compiled, vLLM starts no second engine in the same process.
    results = {
        **run({"chain": {"engine": runs.engine(**ngram), "passes": [PASS]}}),
        **run({"plain": PLAIN, "tree": with_trees(ngram, 16)}),
    }
    assert results["chain"]["passes"] == results["plain"]["passes"]
    assert results["tree"]["passes"] == results["plain"]["passes"]
    assert runs.acceptance(results["tree"]) > runs.acceptance(results["chain"]) + 0.1
    assert results["tree"]["counters"]["branches"] > 10


def test_draft_model(run: Run, python: Path, tmp_path: Path) -> None:
    """The chain of a noisy copy of the target, with the other candidates of each step as leaves."""
    noisy = drafters.perturbed(python, tmp_path / "noisy")
    draft_model = {"speculative_config": {**DRAFT_MODEL, "model": noisy}}
    results = run(
        {
            "plain": PLAIN,
            "chain": {"engine": runs.engine(**draft_model), "passes": [PASS]},
            "tree": with_trees(draft_model, 16),
        }
    )
    assert results["chain"]["passes"] == results["plain"]["passes"]
    assert results["tree"]["passes"] == results["plain"]["passes"]
    counters = results["tree"]["counters"]
    assert counters["branches"] > 20
    # The first branch is the chain that vLLM would have verified.
    chain = runs.acceptance(results["chain"])
    assert counters["acceptance_length"] > chain + 0.1
    assert counters["acceptance_length_chain"] == pytest.approx(chain, abs=0.15)


def test_heads(run: Run, python: Path, tmp_path: Path) -> None:
    """The chain of an EAGLE head, and of one that the target brings, with leaves beside it.

    They draft from the target's hidden states, which come from the accepted path or fit nothing.
    """
    target, heads = drafters.heads(python, tmp_path / "heads")
    cases = {"plain": {"engine": runs.engine(model=target), "passes": [PASS]}}
    for name, config in heads.items():
        drafter = {"model": target, "speculative_config": config}
        cases[f"{name} chain"] = {"engine": runs.engine(**drafter), "passes": [PASS]}
        cases[name] = with_trees(drafter, 12)
    results = run(cases)
    for name, result in results.items():
        assert result["passes"] == results["plain"]["passes"], name
    for name, shortest in (("eagle", 2.5), ("mtp", 1.5)):
        chain, counters = runs.acceptance(results[f"{name} chain"]), results[name]["counters"]
        assert chain > shortest, name
        assert counters["acceptance_length_chain"] == pytest.approx(chain, abs=0.15), name
        assert counters["acceptance_length"] > chain + 0.05, name
        assert counters["branches"] > 20, name
        assert counters["fallbacks"] == {}, name


def test_patched_and_not_configured_is_stock(run: Run, tmp_path: Path) -> None:
    """Without settings the patched engine gives what the installed one gives, metrics included."""
    cases = {"chain": {"engine": runs.engine(**runs.dflash()), "passes": [PASS]}}
    stock = runs.run(environment.engine_python(), tmp_path, cases)
    patched = run(cases)
    assert patched["chain"]["passes"] == stock["chain"]["passes"]
    assert patched["chain"]["metrics"] == stock["chain"]["metrics"]
