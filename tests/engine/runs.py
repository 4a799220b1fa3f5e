"""Cases for `driver.py`, and what their results say."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

from ..checkout import ROOT

HERE = Path(__file__).parent
MODELS = ROOT / "patches" / "verify" / "models"
TARGET = str(MODELS / "tiny-qwen3-target")
DRAFTER = str(MODELS / "tiny-dflash-drafter")
VOCABULARY = 512

Case = dict[str, Any]
Pass = list[dict[str, Any]]


def prompts(lengths: tuple[int, ...], seed: int = 1) -> list[list[int]]:
    """Random prompts of these lengths."""
    source = random.Random(seed)
    return [[source.randrange(500) for _ in range(length)] for length in lengths]


def greedy(prompts: list[list[int]], tokens: int, **given: Any) -> dict[str, Any]:
    """A pass in which every request decodes greedily."""
    sampling = {"temperature": 0.0, "max_tokens": tokens, "ignore_eos": True, **given}
    return {"prompts": prompts, "sampling": [sampling] * len(prompts)}


def continued(of: str, requests: int, after: int, tokens: int) -> dict[str, Any]:
    """A greedy pass over the prompts of the case `of` and what it generated after them."""
    sampling = {"temperature": 0.0, "max_tokens": tokens, "ignore_eos": True}
    return {"of": of, "after": after, "sampling": [sampling] * requests}


def engine(**given: Any) -> dict[str, Any]:
    """Arguments of vLLM's `LLM` for the tiny target in float32."""
    return {
        "model": TARGET,
        "skip_tokenizer_init": True,
        "dtype": "float32",
        "enforce_eager": True,
        "block_size": 32,
        "max_model_len": 512,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 1024,
        "disable_log_stats": False,
        **given,
    }


def trees(budget: int, **given: Any) -> dict[str, Any]:
    """The engine argument that turns trees on."""
    return {"additional_config": {"ddtree": {"budget": budget, **given}}}


def oracle_drafter(nodes: int) -> dict[str, Any]:
    """The engine argument that drafts with the oracle."""
    drafter = {"method": "custom_class", "model": "oracle.Oracle", "num_speculative_tokens": nodes}
    return {"speculative_config": drafter}


def oracle(of: str, nodes: int, **given: Any) -> dict[str, Any]:
    """An oracle that knows what the case `of` generated, and how it grows trees."""
    return {"of": of, "nodes": nodes, "seed": 7, "vocabulary": VOCABULARY, **given}


def dflash(depth: int = 7) -> dict[str, Any]:
    """The engine argument that drafts with the tiny block drafter."""
    drafter = {"method": "dflash", "model": DRAFTER, "num_speculative_tokens": depth}
    return {"speculative_config": drafter}


def tokens(one: Pass) -> list[list[int]]:
    """The tokens of every request of a pass."""
    return [request["tokens"] for request in one]


def acceptance(result: dict[str, Any]) -> float:
    """Mean acceptance length, the bonus token included, by vLLM's own metrics."""
    metrics = result["metrics"]
    drafts: float = metrics["vllm:spec_decode_num_drafts"]
    accepted: float = metrics["vllm:spec_decode_num_accepted_tokens"]
    return 1 + accepted / max(drafts, 1)


def run(python: Path, folder: Path, cases: dict[str, Case], **environment: str) -> dict[str, Any]:
    """Run cases in one process of an engine environment; results by name.

    Args:
        python: its interpreter, of an environment with a patched vLLM.
        folder: where the process works; it has to exist. What was printed is its `log`.
        cases: `engine` arguments, `passes`, and optionally `oracle` and `counters`.
        environment: further variables.
    """
    (folder / "cases.json").write_text(json.dumps(cases))
    variables = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        # For cases that leave out parts of the runtime.
        "DDTREE_CONTROLS": "1",
        **environment,
    }
    done = subprocess.run(
        [str(python), str(HERE / "driver.py"), "cases.json", "results.json"],
        cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    (folder / "log").write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"the engine ended with {done.returncode}\n{done.stderr[-4000:]}")
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results
