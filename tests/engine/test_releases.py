"""Other releases in real engines: what `ddtree patch --apply` makes of them is still greedy."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from . import drafters, environment, installs, interpreter, runs, test_v2
from .test_drafters import DRAFT_MODEL, NGRAM, PASS, with_trees
from .test_trees import PLAIN, PROMPTS, with_oracle

pytestmark = [pytest.mark.engine, pytest.mark.extended]

DFLASH = {
    "engine": runs.engine(**runs.dflash(), **runs.trees(16)),
    "passes": [runs.greedy(PROMPTS, 160)],
    "counters": True,
}


RELEASES = ("0.27.1", "0.28.0", "0.29.0", "0.31.0", "0.33.0")


@pytest.mark.parametrize("release", RELEASES)
def test_trees_of_a_release(release: str, tmp_path: Path) -> None:
    """Oracle trees over two passes, and a block drafter's; without the mask it would be noticed."""
    python = installs.patched(environment.engine_python(), tmp_path / "env", release)
    passes = [runs.greedy(PROMPTS, 160), runs.continued("plain", len(PROMPTS), 100, 60)]
    cases = {
        "plain": PLAIN,
        "oracle": with_oracle(20, *passes),
        "dflash": DFLASH,
        "blind": with_oracle(20, trees={"without": ["mask"]}),
    }
    (tmp_path / "work").mkdir()
    results = runs.run(python, tmp_path / "work", cases, **installs.variables(release))
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
    """Draft models, heads and matches of the text: greedy, and longer paths than their chains."""
    python = installs.patched(environment.engine_python(), tmp_path / "env", release)
    noisy = drafters.perturbed(python, tmp_path / "noisy")
    target, heads = drafters.heads(python, tmp_path / "heads")
    given: dict[str, dict[str, Any]] = {
        "draft_model": {"speculative_config": {**DRAFT_MODEL, "model": noisy}},
        **{name: {"model": target, "speculative_config": heads[name]} for name in heads},
        # Once its code is compiled, vLLM starts no other engine in the same process.
        "ngram": {"speculative_config": NGRAM},
    }
    cases = {
        "plain": {"engine": runs.engine(), "passes": [PASS]},
        "plain of heads": {"engine": runs.engine(model=target), "passes": [PASS]},
        **{name: with_trees(given[name], 16) for name in given},
    }
    (tmp_path / "work").mkdir()
    results = runs.run(python, tmp_path / "work", cases, **installs.variables(release))
    for name in given:
        truth = results["plain of heads" if name in heads else "plain"]["passes"]
        assert results[name]["passes"] == truth, name
        counters = results[name]["counters"]
        assert counters["branches"] > 10, name
        assert counters["fallbacks"] == {}, name
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.05, name


@pytest.mark.parametrize("trees", [False, True])
def test_speculation_of_0_30_0_fails_by_itself(trees: bool, tmp_path: Path) -> None:
    """Its stand-in for Triton on CPU cannot start the stock rejection kernel; trees use it too."""
    python = installs.patched(environment.engine_python(), tmp_path / "env", "0.30.0")
    config = runs.trees(16) if trees else {}
    passes = [runs.greedy(PROMPTS[:1], 10)]
    case = {"engine": runs.engine(**runs.dflash(), **config), "passes": passes}
    (tmp_path / "work").mkdir()
    with pytest.raises(RuntimeError, match="Cannot inspect kernel parameters"):
        runs.run(python, tmp_path / "work", {"one": case})


class V2:
    """A patched release's V2 runner under Triton's interpreter, and its V1 runner for truth."""

    def __init__(self, release: str, root: Path) -> None:
        """Patch it in a new environment below `root`."""
        self.python = installs.patched(environment.engine_python(), root / "env", release)
        self.root = root
        self.told = installs.variables(release)
        self.standin = interpreter.write(root / "standin", named=True)

    def truth(self, tokens: int, **given: Any) -> list[list[int]]:
        """The prompts, each with what decoding without speculation gives after it."""
        plain = {"engine": runs.engine(**given), "passes": [runs.greedy(test_v2.PROMPTS, tokens)]}
        (one,) = self._run({"plain": plain}, VLLM_USE_V2_MODEL_RUNNER="0")["plain"]["passes"]
        pairs = zip(test_v2.PROMPTS, runs.tokens(one), strict=True)
        return [prompt + more for prompt, more in pairs]

    def run(self, cases: dict[str, runs.Case]) -> dict[str, Any]:
        """Results of the cases on the V2 runner."""
        path = f"{runs.HERE}:{self.standin}"
        return self._run(cases, PYTHONPATH=path, **interpreter.ENVIRONMENT)

    def _run(self, cases: dict[str, runs.Case], **variables: str) -> dict[str, Any]:
        work = Path(tempfile.mkdtemp(dir=self.root))
        return runs.run(self.python, work, cases, **self.told, **variables)


V2_RELEASES = ("0.27.1", "0.30.0", "0.31.0", "0.33.0")
# Before, a draft model runs on the V1 runner.
V2_DRAFT_MODEL = ("0.31.0", "0.33.0")


@pytest.mark.parametrize("release", V2_RELEASES)
def test_trees_of_a_release_on_the_v2_runner(release: str, tmp_path: Path) -> None:
    """Oracle trees, and a block drafter's with steps scheduled ahead, under the interpreter."""
    runner = V2(release, tmp_path)
    known = runner.truth(64)
    first, second = runs.greedy(test_v2.PROMPTS, 24), runs.greedy(test_v2.begun(known, 20), 16)
    cases = {
        "oracle": test_v2.with_oracle(known, 12, first, second),
        "dflash": test_v2.case(first, changes=("asynchronous",), **runs.dflash(), **runs.trees(16)),
    }
    results = runner.run(cases)
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


@pytest.mark.parametrize("release", V2_RELEASES)
def test_drafters_of_a_release_on_the_v2_runner(release: str, tmp_path: Path) -> None:
    """Heads, and a draft model where the runner has one, with steps scheduled ahead."""
    runner = V2(release, tmp_path)
    target, heads = drafters.heads(runner.python, tmp_path / "heads")
    given = {name: {"model": target, "speculative_config": heads[name]} for name in heads}
    known = dict.fromkeys(heads, runner.truth(24, model=target))
    if release in V2_DRAFT_MODEL:
        noisy = drafters.perturbed(runner.python, tmp_path / "noisy")
        given["draft_model"] = {"speculative_config": {**DRAFT_MODEL, "model": noisy}}
        known["draft_model"] = runner.truth(24)
    one = runs.greedy(test_v2.PROMPTS, 24)
    ahead = ("asynchronous",)
    cases = {
        name: test_v2.case(one, changes=ahead, **given[name], **runs.trees(12)) for name in given
    }
    for name, result in runner.run(cases).items():
        assert runs.tokens(result["passes"][0]) == test_v2.decoded(known[name], tokens=24), name
        counters = result["counters"]
        assert counters["branches"] > 0, name
        assert counters["fallbacks"] == {}, name
