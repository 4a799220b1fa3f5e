"""Releases before 0.27.0 in engines whose compiled operators are stand-ins; see `stand_ins`.

They were compiled for another torch. All else is the release's own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from . import runs
from .released import Release, draft_on_v1, draft_on_v2
from .test_drafters import PASS, with_trees
from .test_trees import PLAIN, PROMPTS, with_oracle

pytestmark = [pytest.mark.engine, pytest.mark.extended]

# Of the oracle, by its configuration; its trees have 20 nodes.
DEPTH = 4
NO_BLOCKS = ("draft_model", "eagle", "mtp", "ngram")
ALL = ("dflash", *NO_BLOCKS)
# Up to 0.24.0, the V1 runner's block drafter asks Triton for a number, and fails without Triton.
DRAFTERS = {
    "0.20.1": ("draft_model", "ngram"),
    "0.22.1": NO_BLOCKS,
    "0.23.0": NO_BLOCKS,
    "0.24.0": NO_BLOCKS,
    "0.25.0": ALL,
    "0.25.1": ALL,
    "0.26.0": ALL,
}


@pytest.mark.parametrize("version", DRAFTERS)
def test_drafters(version: str, tmp_path: Path) -> None:
    """ngram's tries come as lists, draft_model's, eagle's and mtp's leaves as one wide tensor.

    What dflash drafts is a tree of its own.
    """
    release = Release(version, tmp_path, stand_ins=True)
    draft_on_v1(release, DRAFTERS[version])
    release.give_back()


def test_without_the_commit_the_output_of_0_20_1_is_wrong(tmp_path: Path) -> None:
    """So that its equality proves something."""
    release = Release("0.20.1", tmp_path, stand_ins=True)
    (given,) = release.drafters(("draft_model",)).values()
    plain = {"engine": runs.engine(), "passes": [PASS]}
    results = release.run({"plain": plain, "blind": with_trees(given, 16, without=["commit"])})
    assert results["blind"]["passes"] != results["plain"]["passes"]


@pytest.mark.parametrize("version", ["0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.25.1", "0.26.0"])
def test_oracle_trees(version: str, tmp_path: Path) -> None:
    """Random trees over two passes, in every layout of a cache that attention itself writes.

    The trees are wider than what the drafter says that it drafts, which is what vLLM reserves by
    itself.
    """
    passes = [runs.greedy(PROMPTS, 160), runs.continued("plain", len(PROMPTS), 100, 60)]
    cases = {
        "plain": PLAIN,
        "oracle": with_oracle(20, *passes, **runs.oracle_drafter(DEPTH)),
        "blind": with_oracle(20, trees={"without": ["mask"]}),
    }
    release = Release(version, tmp_path, stand_ins=True)
    results = release.run(cases)
    release.give_back()
    truth = runs.tokens(results["plain"]["passes"][0])
    first, second = (runs.tokens(one) for one in results["oracle"]["passes"])
    assert first == truth
    assert second == [tokens[100:] for tokens in truth]
    assert runs.tokens(results["blind"]["passes"][0]) != truth
    counters = results["oracle"]["counters"]
    assert counters["branches"] > 250
    assert counters["fallbacks"] == {}
    assert counters["rows"] > 2 * DEPTH * counters["requests"]
    assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.5


@pytest.mark.parametrize("version", ["0.24.0", "0.25.0", "0.25.1", "0.26.0"])
def test_drafters_on_the_v2_runner(version: str, tmp_path: Path) -> None:
    """Under Triton's interpreter, and with stand-ins for compiled operators besides."""
    draft_on_v2(Release(version, tmp_path, stand_ins=True), ("dflash", "eagle", "mtp"))
