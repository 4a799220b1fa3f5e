"""Another plug-in replaces what is hooked: noticed at start, or in the step; never wrong output."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from . import interpreter, runs, test_v2
from .test_drafters import PROMPTS

V1 = "vllm.v1.worker.gpu_model_runner:GPUModelRunner"
SAMPLER = "vllm.v1.sample.rejection_sampler:rejection_sample"
V2 = "vllm.v1.worker.gpu.model_runner:GPUModelRunner"
V2_SAMPLER = "vllm.v1.worker.gpu.spec_decode.rejection_sampler:RejectionSampler.__call__"
# Where, how, when, and what is said; without words, the output is greedy.
Cases = dict[str, tuple[str, str, str, str]]
AT_START = "which does not call what it replaces; to start, leave out"


def came(python: Path, given: dict[str, Any], cases: Cases, **variables: str) -> dict[str, Any]:
    """What came of engines while something was replaced."""
    replaced = {
        name: {"where": where, "how": how, "when": when}
        for name, (where, how, when, _) in cases.items()
    }
    environment = {
        "PYTHONPATH": str(runs.HERE),
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        **variables,
    }
    done = subprocess.run(
        [str(python), str(runs.HERE / "replaced.py")],
        env={**os.environ, **environment},
        input=json.dumps({**given, "replaced": replaced}),
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any], cases: Cases, truth: list[list[int]]) -> None:
    """Every case is refused in its words, or gives what greedy decoding gives."""
    for name, (*_, words) in cases.items():
        if words:
            assert isinstance(found[name], str), name
            assert words in found[name], (name, found[name])
        else:
            assert found[name] == truth, name


@pytest.mark.engine
def test_on_the_v1_runner(python: Path) -> None:
    """Whatever is replaced, and whether it can be seen before a step is made or not."""
    cases: Cases = {
        "no change": (f"{V1}._sample", "calls", "before", ""),
        "the walk": (f"{V1}._sample", "stock", "before", AT_START),
        "the walk, later": (f"{V1}._sample", "keeps", "before", "own decision without their walk"),
        "the mask": (f"{V1}._prepare_inputs", "stock", "before", AT_START),
        "the mask, later": (f"{V1}._prepare_inputs", "stock", "after", "without their mask"),
        "the tokens": (SAMPLER, "stock", "before", AT_START),
        "the tokens, later": (SAMPLER, "stock", "after", "decided without asking"),
        "the drafts": (f"{V1}.propose_draft_token_ids", "stock", "before", AT_START),
        "the caches": (f"{V1}.initialize_kv_cache", "keeps", "before", "look at the target's"),
    }
    engine = runs.engine(**runs.dflash(), **runs.trees(16))
    given = {"engine": engine, "prompts": PROMPTS[:4], "tokens": 40}
    found = came(python, given, cases)
    plain: Cases = {"plain": (f"{V1}._sample", "calls", "before", "")}
    check(found, cases, came(python, {**given, "engine": runs.engine()}, plain)["plain"])


@pytest.mark.extended
@pytest.mark.engine
def test_on_the_v2_runner(python: Path, tmp_path: Path) -> None:
    """The same of the other runner."""
    cases: Cases = {
        "the walk": (V2_SAMPLER, "stock", "before", AT_START),
        "the walk, later": (V2_SAMPLER, "stock", "after", "own decision without their walk"),
        "the mask, later": (f"{V2}.prepare_attn", "stock", "after", "without their mask"),
        "the caches": (f"{V2}.initialize_kv_cache", "keeps", "before", "look at the target's"),
        "the state": (f"{V2}.__init__", "keeps", "before", "made without them"),
    }
    engine = runs.engine(**test_v2.SMALL, **runs.dflash(), **runs.trees(16))
    given = {"engine": engine, "prompts": test_v2.PROMPTS, "tokens": 12}
    standin = interpreter.write(tmp_path / "standin")
    variables = {"PYTHONPATH": f"{runs.HERE}:{standin}", **interpreter.ENVIRONMENT}
    check(came(python, given, cases, **variables), cases, [])
