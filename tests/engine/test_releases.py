"""Other releases in real engines: what `ddtree patch --apply` makes of them is still greedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import runs, test_v2
from .released import Release, draft_on_v1, draft_on_v2
from .test_trees import PLAIN, PROMPTS, with_oracle

pytestmark = [pytest.mark.engine, pytest.mark.extended]

DFLASH = {
    "engine": runs.engine(**runs.dflash(), **runs.trees(16)),
    "passes": [runs.greedy(PROMPTS, 160)],
    "counters": True,
}
RELEASES = ("0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.31.0", "0.33.0")
V2_RELEASES = ("0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.33.0")
# Before, a draft model runs on the V1 runner.
V2_DRAFT_MODEL = ("0.31.0", "0.33.0")


@pytest.mark.parametrize("release", RELEASES)
def test_trees_of_a_release(release: str, tmp_path: Path) -> None:
    """Oracle trees over two passes, and a block drafter's; without the mask it would be noticed."""
    passes = [runs.greedy(PROMPTS, 160), runs.continued("plain", len(PROMPTS), 100, 60)]
    cases = {
        "plain": PLAIN,
        "oracle": with_oracle(20, *passes),
        "dflash": DFLASH,
        "blind": with_oracle(20, trees={"without": ["mask"]}),
    }
    results = Release(release, tmp_path).run(cases)
    truth = runs.tokens(results["plain"]["passes"][0])
    first, second = (runs.tokens(one) for one in results["oracle"]["passes"])
    assert first == truth
    assert second == [tokens[100:] for tokens in truth]
    assert runs.tokens(results["dflash"]["passes"][0]) == truth
    assert runs.tokens(results["blind"]["passes"][0]) != truth
    for name, fewest in (("oracle", 250), ("dflash", 50)):
        counters = results[name]["counters"]
        assert counters["branches"] > fewest, name
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.1, name


@pytest.mark.parametrize("release", RELEASES)
def test_drafters_of_a_release(release: str, tmp_path: Path) -> None:
    """A draft model, heads, and matches of the text."""
    draft_on_v1(Release(release, tmp_path), ("draft_model", "eagle", "mtp", "ngram"))


@pytest.mark.parametrize("trees", [False, True])
def test_speculation_of_0_30_0_fails_by_itself(trees: bool, tmp_path: Path) -> None:
    """Its stand-in for Triton on CPU cannot start the stock rejection kernel; trees use it too."""
    config = runs.trees(16) if trees else {}
    passes = [runs.greedy(PROMPTS[:1], 10)]
    case = {"engine": runs.engine(**runs.dflash(), **config), "passes": passes}
    release = Release("0.30.0", tmp_path)
    with pytest.raises(RuntimeError, match="Cannot inspect kernel parameters"):
        release.run({"one": case})


@pytest.mark.parametrize("version", V2_RELEASES)
def test_trees_of_a_release_on_the_v2_runner(version: str, tmp_path: Path) -> None:
    """Oracle trees, and a block drafter's with steps scheduled ahead, under the interpreter."""
    release = Release(version, tmp_path)
    known = release.known(64)
    first, second = runs.greedy(test_v2.PROMPTS, 24), runs.greedy(test_v2.begun(known, 20), 16)
    cases = {
        "oracle": test_v2.with_oracle(known, 12, first, second),
        "dflash": test_v2.case(first, changes=("asynchronous",), **runs.dflash(), **runs.trees(16)),
    }
    results = release.run_v2(cases)
    truth = test_v2.decoded(known, tokens=24)
    assert [runs.tokens(pass_) for pass_ in results["oracle"]["passes"]] == [
        truth,
        test_v2.decoded(known, 20, 16),
    ]
    assert runs.tokens(results["dflash"]["passes"][0]) == truth
    for name in ("oracle", "dflash"):
        counters = results[name]["counters"]
        assert counters["branches"] > 3, name
        assert counters["fallbacks"] == {}, name


@pytest.mark.parametrize("version", V2_RELEASES)
def test_drafters_of_a_release_on_the_v2_runner(version: str, tmp_path: Path) -> None:
    """Heads, and a draft model where the runner has one."""
    more = ("draft_model",) if version in V2_DRAFT_MODEL else ()
    draft_on_v2(Release(version, tmp_path), ("eagle", "mtp", *more))
