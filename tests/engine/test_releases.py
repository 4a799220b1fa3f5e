"""Other releases in real engines: what `ddtree patch --apply` makes of them is still greedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import environment, installs, interpreter, runs, test_v2
from .test_trees import PLAIN, PROMPTS, with_oracle

pytestmark = [pytest.mark.engine, pytest.mark.extended]

DFLASH = {
    "engine": runs.engine(**runs.dflash(), **runs.trees(16)),
    "passes": [runs.greedy(PROMPTS, 160)],
    "counters": True,
}


@pytest.mark.parametrize("release", ["0.27.1", "0.28.0", "0.29.0", "0.31.0"])
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
    results = runs.run(python, tmp_path / "work", cases)
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


@pytest.mark.parametrize("release", ["0.27.1", "0.30.0", "0.31.0"])
def test_trees_of_a_release_on_the_v2_runner(release: str, tmp_path: Path) -> None:
    """Oracle trees, and a block drafter's with steps scheduled ahead, under the interpreter."""
    python = installs.patched(environment.engine_python(), tmp_path / "env", release)
    (tmp_path / "v1").mkdir()
    plain = {"engine": runs.engine(), "passes": [runs.greedy(test_v2.PROMPTS, 64)]}
    (one,) = runs.run(python, tmp_path / "v1", {"plain": plain})["plain"]["passes"]
    pairs = zip(test_v2.PROMPTS, runs.tokens(one), strict=True)
    known = [prompt + more for prompt, more in pairs]
    first, second = runs.greedy(test_v2.PROMPTS, 24), runs.greedy(test_v2.begun(known, 20), 16)
    cases = {
        "oracle": test_v2.with_oracle(known, 12, first, second),
        "dflash": test_v2.case(first, changes=("asynchronous",), **runs.dflash(), **runs.trees(16)),
    }
    standin = interpreter.write(tmp_path / "standin", named=True)
    (tmp_path / "v2").mkdir()
    path = f"{runs.HERE}:{standin}"
    results = runs.run(python, tmp_path / "v2", cases, PYTHONPATH=path, **interpreter.ENVIRONMENT)
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
