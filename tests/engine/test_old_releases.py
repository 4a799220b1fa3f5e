"""Releases before 0.24.0 in engines whose compiled operators are stand-ins, since they were compiled
for another torch; all else is the release's own. See `stand_ins`.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from . import environment, installs, runs, verified
from .test_drafters import PASS

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
NGRAM = {
    "speculative_config": {
        "method": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_max": 3,
        "prompt_lookup_min": 1,
    }
}


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


@pytest.mark.parametrize("release", ["0.20.1"])
def test_ngram_trees(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The edited modules are imported, trees are verified, and every byte is given back."""
    monkeypatch.setenv("DDTREE_STATE", str(tmp_path / "state"))
    folder = tmp_path / "env"
    python = installed(release, folder)
    before = digests(python)
    patch(folder, "--apply", "--check-imports")
    cases = {
        "plain": case(),
        "chain": case(**NGRAM),
        "tree": case(**NGRAM, **runs.trees(16)),
        "blind": case(**NGRAM, **runs.trees(16, without=["mask", "positions", "commit"])),
    }
    (tmp_path / "work").mkdir()
    results = runs.run(python, tmp_path / "work", cases, **VARIABLES)
    truth = results["plain"]["passes"]
    assert results["chain"]["passes"] == truth
    assert results["tree"]["passes"] == truth
    assert results["blind"]["passes"] != truth
    assert runs.acceptance(results["tree"]) > runs.acceptance(results["chain"]) + 0.1
    assert results["tree"]["counters"]["branches"] > 10
    patch(folder, "--revert")
    assert digests(python) == before
