"""Releases before 0.24.0 in engines whose compiled operators are stand-ins; see `stand_ins`.

They were compiled for another torch. All else is the release's own.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from . import drafters, environment, installs, runs, verified
from .test_drafters import DRAFT_MODEL, NGRAM, PASS
from .test_trees import PLAIN, PROMPTS, with_oracle

pytestmark = [pytest.mark.engine, pytest.mark.extended]

STAND_INS = Path(__file__).parent / "stand_ins"
VARIABLES = {
    # 0.20.1 looks up the threads that it was told not to bind.
    "VLLM_CPU_OMP_THREADS_BIND": "0-1",
    # Compiling one function of the sampler takes longer than all that is run here.
    "TORCH_COMPILE_DISABLE": "1",
    # The worker is a process of its own, which is asked for its counters.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}
# Of the oracle, by its configuration; its trees have 20 nodes.
DEPTH = 4


def installed(release: str, folder: Path) -> Path:
    """The interpreter of an environment with the release and the stand-ins."""
    python = installs.environment(environment.engine_python(), folder, release)
    for file in STAND_INS.glob("*.py"):
        shutil.copy(file, environment.site_packages(python))
    return python


def digests(python: Path) -> dict[str, str]:
    """What vLLM's own files are, bytecode left out."""
    site = environment.site_packages(python)
    return {
        str(path.relative_to(site)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in site.glob("vllm*/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def case(**given: Any) -> runs.Case:
    """A case of one greedy pass."""
    counted = "additional_config" in given
    return {"engine": runs.engine(**given), "passes": [PASS], "counters": counted}


def patch(folder: Path, *arguments: str) -> None:
    """Run `ddtree patch` on an environment."""
    code, out, err = verified.run("patch", folder, "--yes", *arguments)
    assert code == 0, out + err


def patched_and_run(release: str, root: Path, cases: dict[str, runs.Case]) -> dict[str, Any]:
    """Results of the cases in a patched release, whose bytes are all given back afterwards."""
    folder, work = root / "env", root / "work"
    python = installed(release, folder)
    before = digests(python)
    patch(folder, "--apply", "--check-imports")
    work.mkdir()
    results = runs.run(python, work, cases, **VARIABLES)
    patch(folder, "--revert")
    assert digests(python) == before
    return results


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journals of what is thrown away soon are nobody's."""
    monkeypatch.setenv("DDTREE_STATE", str(tmp_path / "state"))


@pytest.mark.parametrize("release", ["0.20.1"])
def test_drafters(release: str, tmp_path: Path) -> None:
    """n-gram tries come as lists; a draft model's chain with siblings as one wide tensor."""
    noisy = drafters.perturbed(environment.engine_python(), tmp_path / "noisy")
    draft_model = {"speculative_config": {**DRAFT_MODEL, "model": noisy}}
    cases = {
        "plain": case(),
        "ngram": case(speculative_config=NGRAM, **runs.trees(16)),
        "draft_model": case(**draft_model, **runs.trees(16)),
        "blind": case(**draft_model, **runs.trees(16, without=["commit"])),
    }
    results = patched_and_run(release, tmp_path, cases)
    truth = results["plain"]["passes"]
    assert results["blind"]["passes"] != truth
    for name in ("ngram", "draft_model"):
        assert results[name]["passes"] == truth
        counters = results[name]["counters"]
        assert counters["branches"] > 10
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.1
        assert counters["acceptance_length"] == pytest.approx(runs.acceptance(results[name]))


@pytest.mark.parametrize("release", ["0.22.1", "0.23.0"])
def test_oracle_trees(release: str, tmp_path: Path) -> None:
    """Random trees over two passes, in both layouts of a cache that attention itself writes.

    The trees are wider than what the drafter says that it drafts, which is what vLLM reserves by
    itself.
    """
    passes = [runs.greedy(PROMPTS, 160), runs.continued("plain", len(PROMPTS), 100, 60)]
    cases = {
        "plain": PLAIN,
        "oracle": with_oracle(20, *passes, **runs.oracle_drafter(DEPTH)),
        "blind": with_oracle(20, trees={"without": ["mask"]}),
    }
    results = patched_and_run(release, tmp_path, cases)
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
