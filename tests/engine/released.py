"""A patched release in an environment of its own, and what its drafters' trees have to show there.

A release that does not load beside this torch gets stand-ins for its compiled operators; see
`stand_ins`.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ddtree.patches.way import Way

from . import drafters, environment, installs, interpreter, runs, test_v2, verified
from .test_drafters import DRAFT_MODEL, NGRAM, PASS, with_trees

STAND_INS = Path(__file__).parent / "stand_ins"
WITH_STAND_INS = {
    # 0.20.1 looks up the threads that it was told not to bind.
    "VLLM_CPU_OMP_THREADS_BIND": "0-1",
    # Compiling one function of the sampler takes longer than all that is run here.
    "TORCH_COMPILE_DISABLE": "1",
    # The worker is a process of its own, which is asked for its counters.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}


class Release:
    """A release whose engines run: the V1 runner, and V2 under Triton's interpreter."""

    def __init__(
        self, version: str, root: Path, *, stand_ins: bool = False, way: Way = Way.EDITS
    ) -> None:
        """Install it below `root`, and patch it."""
        self.root, self.folder = root, root / "env"
        self.python = installs.environment(environment.engine_python(), self.folder, version)
        self._variables = installs.variables(version)
        if stand_ins:
            self._variables |= WITH_STAND_INS
            for file in STAND_INS.glob("*.py"):
                shutil.copy(file, environment.site_packages(self.python))
        self._before = self._digests()
        self._patch("--apply", "--check-imports", *way.options)
        assert (self._digests() == self._before) is (way == Way.PLUGIN)

    def give_back(self) -> None:
        """Revert the patch; every byte is as the installer left it."""
        self._patch("--revert")
        assert self._digests() == self._before

    def run(self, cases: dict[str, runs.Case]) -> dict[str, Any]:
        """Results of the cases on the V1 runner."""
        return self._run(cases, VLLM_USE_V2_MODEL_RUNNER="0")

    def run_v2(self, cases: dict[str, runs.Case]) -> dict[str, Any]:
        """Results of the cases on the V2 runner."""
        standin = self.root / "interpreter"
        if not standin.exists():
            interpreter.write(standin, named=True)
        return self._run(cases, PYTHONPATH=f"{runs.HERE}:{standin}", **interpreter.ENVIRONMENT)

    def known(self, tokens: int, **given: Any) -> list[list[int]]:
        """The V2 runner's prompts, each with what V1 decodes after it without speculation."""
        plain = {"engine": runs.engine(**given), "passes": [runs.greedy(test_v2.PROMPTS, tokens)]}
        (one,) = self.run({"plain": plain})["plain"]["passes"]
        pairs = zip(test_v2.PROMPTS, runs.tokens(one), strict=True)
        return [prompt + more for prompt, more in pairs]

    def drafters(self, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        """Engine arguments of drafters; a head comes with a target of its own."""
        made: dict[str, dict[str, Any]] = {
            "dflash": runs.dflash(),
            "ngram": {"speculative_config": NGRAM},
        }
        folder = Path(tempfile.mkdtemp(dir=self.root))
        # The interpreter of the engine environment, which no start-up of stand-ins changes.
        python = environment.engine_python()
        if "draft_model" in names:
            noisy = drafters.perturbed(python, folder / "noisy")
            made["draft_model"] = {"speculative_config": {**DRAFT_MODEL, "model": noisy}}
        if {"eagle", "mtp"} & set(names):
            target, heads = drafters.heads(python, folder / "heads")
            made |= {name: {"model": target, "speculative_config": heads[name]} for name in heads}
        return {name: made[name] for name in names}

    def _patch(self, *arguments: str) -> None:
        # The journal of what is thrown away soon is nobody's.
        state = str(self.root / "state")
        code, out, err = verified.run("patch", self.folder, "--yes", *arguments, DDTREE_STATE=state)
        assert code == 0, out + err

    def _digests(self) -> dict[str, str]:
        """What vLLM's own files are, bytecode left out."""
        site = environment.site_packages(self.python)
        return {
            str(path.relative_to(site)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in site.glob("vllm*/**/*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    def _run(self, cases: dict[str, runs.Case], **variables: str) -> dict[str, Any]:
        work = Path(tempfile.mkdtemp(dir=self.root))
        return runs.run(self.python, work, cases, **{**self._variables, **variables})


def draft_on_v1(release: Release, names: tuple[str, ...]) -> None:
    """Every drafter's trees are greedy there, and their paths longer than its chains.

    Once n-gram's code is compiled, vLLM starts no other engine in the same process: it is last.
    """
    given = release.drafters(names)
    targets = {one.get("model", runs.TARGET) for one in given.values()}
    cases = {
        **{target: {"engine": runs.engine(model=target), "passes": [PASS]} for target in targets},
        **{name: with_trees(given[name], 16) for name in names},
    }
    results = release.run(cases)
    for name in names:
        truth = results[given[name].get("model", runs.TARGET)]["passes"]
        assert results[name]["passes"] == truth, name
        counters = results[name]["counters"]
        assert counters["branches"] > 10, name
        assert counters["fallbacks"] == {}, name
        assert counters["acceptance_length"] > counters["acceptance_length_chain"] + 0.05, name
        length = runs.acceptance(results[name])
        assert counters["acceptance_length"] == pytest.approx(length, abs=0.02), name


def draft_on_v2(release: Release, names: tuple[str, ...], tokens: int = 24) -> None:
    """The same of the other runner, with steps scheduled ahead, and few of them."""
    given = release.drafters(names)
    targets = {one.get("model", runs.TARGET) for one in given.values()}
    known = {target: release.known(tokens, model=target) for target in targets}
    one = runs.greedy(test_v2.PROMPTS, tokens)
    cases = {
        name: test_v2.case(one, changes=("asynchronous",), **given[name], **runs.trees(16))
        for name in names
    }
    for name, result in release.run_v2(cases).items():
        truth = known[given[name].get("model", runs.TARGET)]
        assert runs.tokens(result["passes"][0]) == test_v2.decoded(truth, tokens=tokens), name
        assert result["counters"]["branches"] > 0, name
        assert result["counters"]["fallbacks"] == {}, name
