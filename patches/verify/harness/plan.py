"""Which engines a verification starts, with which settings, and in which processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Job = dict[str, Any]

ENGINE_LEVELS = ("L3", "L4", "L5")
# One process for engines that live side by side, so that their steps can be timed in turns.
TOGETHER = "engines"
IMPORTS = "imports"
TIMING = "timing"
INPUTS = "inputs"
# The mark in the folder that ends a verification before anything was run.
REFUSED = "refused"
ROUNDS = 12
# Under Triton's interpreter times mean nothing, and a step takes a second.
INTERPRETED_ROUNDS = 2
SEGMENT = 24
# The variable by which vLLM is told its model runner, and what it is told.
RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
RUNNERS = {"v1": "0", "v2": "1"}
NO_TRITON = "the V2 model runner needs Triton, which cannot be imported here"
# The folder of the stand-in for Triton's devices, beside the harness.
STANDIN = "standin"
# The folder of a name for an install that is not called `vllm`; see `archive`.
NAME = "name"


@dataclass(frozen=True, slots=True)
class Case:
    """One engine.

    Attributes:
        name: what the report calls it.
        role: "plain", "chain", "width1", "tree" or "oracle".
        budget: nodes of its trees; 0 where there are none.
        engine: arguments of vLLM's `LLM`.
    """

    name: str
    role: str
    budget: int
    engine: dict[str, Any]


def parts(job: Job, known: Callable[[], Job]) -> Iterator[tuple[str, dict[str, str]]]:
    """The processes of a verification in their order, with variables of their environments.

    Args:
        job: what was asked for.
        known: gives the job again, once the process that imports has asked vLLM for its runner.
    """
    engines = bool(set(job["levels"]) & set(ENGINE_LEVELS))
    if engines and (job["model"] is not None or job["prompts"] is not None):
        # A name that is wrong is better said now than in some minutes.
        yield INPUTS, {}
    for level in ("L1", "L2"):
        if level in job["levels"]:
            yield level, _units(level)
    if engines and job["model"] is None:
        # Importing is the first thing that its process does.
        yield TOGETHER, variables(job)
        return
    yield IMPORTS, variables(job)
    job = known()
    # Where vLLM could not even say which runner it takes, that is the finding.
    for name, _ in roles(job) if engines and job["runner"] else ():
        yield name, variables(job)


def left(job: Job, stage: str) -> str:
    """What comes after a level, the imports or an engine, in words."""
    stages = [level for level in ("L1", "L2") if level in job["levels"]]
    stages.append(IMPORTS)
    if set(job["levels"]) & set(ENGINE_LEVELS):
        stages += [name for name, _ in roles(job)]
        # Engines that live side by side are timed in turns, the others each by themselves.
        stages += [TIMING] * (job["model"] is None)
    after = stages[stages.index(stage) + 1 :]
    return f"left: {', '.join(after)}" if after else "nothing is left"


def _units(level: str) -> dict[str, str]:
    """Environment in which kernels run apart from an engine."""
    if has_gpu():
        return {}
    return {"OMP_NUM_THREADS": "1"} | ({"TRITON_INTERPRET": "1"} if level == "L2" else {})


def roles(job: Job) -> list[tuple[str, str]]:
    """Name and role of every engine that the levels need; what others compare with comes first."""
    levels = set(job["levels"])
    found = [("plain", "plain")]
    if levels & {"L4", "L5"}:
        found.append(("chain", "chain"))
    if "L4" in levels and job["method"] != "ngram":
        found.append(("width 1", "width1"))
    if "L5" in levels:
        found += [(f"tree {budget}", "tree") for budget in job["budgets"]]
    if levels & {"L3", "L5"}:
        found.append(("oracle", "oracle"))
    return found


def variables(job: Job) -> dict[str, str]:
    """Environment of an engine's process."""
    found = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_LOGGING_LEVEL": "WARNING",
        # What the runtime demands before it leaves out parts of itself.
        "DDTREE_CONTROLS": "1",
    }
    if job["runner"] is not None:
        found[RUNNER] = RUNNERS[job["runner"]]
    if interpreted(job):
        found["TRITON_INTERPRET"] = "1"
    if job["model"] is None:
        # Larger teams of threads only wait for each other in a model of this size.
        found |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    return found


def interpreted(job: Job) -> bool:
    """Whether the model runner's own kernels have to run under Triton's interpreter."""
    return job["runner"] == "v2" and not has_gpu()


def chain(job: Job, folder: Path) -> dict[str, Any]:
    """What of the stock chain's engine decides which runner vLLM takes."""
    target, drafter = models(job, folder)
    depth = job["depth"] or depth_of(job["method"], drafter)
    found = {"model": target, "speculative_config": speculation(job["method"], drafter, depth)}
    return {**found, "dtype": job["dtype"], **job["engine"]}


def cases(job: Job, folder: Path, lengths: list[int], *, gpu: bool) -> list[Case]:
    """Every engine of the job.

    Args:
        job: what was asked for.
        folder: where the models that were sent along are.
        lengths: tokens of each prompt.
        gpu: whether the target runs on one.
    """
    target, drafter = models(job, folder)
    depth = job["depth"] or depth_of(job["method"], drafter)
    most = max(job["budgets"], default=depth)
    common = _common(job, target, lengths, most, gpu=gpu)
    speculative = speculation(job["method"], drafter, depth)
    made = []
    for name, role in roles(job):
        budget = {"plain": 0, "chain": 0, "width1": depth, "oracle": most}.get(role, -1)
        budget = int(name.split()[1]) if budget < 0 else budget
        engine = dict(common)
        if role != "plain":
            engine["speculative_config"] = speculative
        if role == "oracle":
            engine |= _oracle(job, most, lengths)
        if budget:
            engine |= _with_trees(job, budget, chain=role == "width1", gpu=gpu)
        elif role == "plain" and gpu and job["runner"] == "v1":
            engine["async_scheduling"] = False
        made.append(Case(name, role, budget, engine | job["engine"]))
    return made


def models(job: Job, folder: Path) -> tuple[str, str | None]:
    """Target and drafter: the user's, or those that were sent along."""
    models = folder / "models"
    if job["model"] is not None:
        return job["model"], job["drafter"]
    return str(models / "tiny-qwen3-target"), str(models / "tiny-dflash-drafter")


def speculation(method: str | None, drafter: str | None, depth: int) -> dict[str, Any]:
    """The stock speculative configuration of a drafter."""
    found: dict[str, Any] = {"num_speculative_tokens": depth}
    if method is not None:
        found["method"] = method
    if drafter is not None:
        found["model"] = drafter
    if method == "ngram":
        found |= {"prompt_lookup_max": 3, "prompt_lookup_min": 1}
    return found


def depth_of(method: str | None, drafter: str | None) -> int:
    """Tokens that a drafter drafts in a chain: a block drafter's block less its first, else 4."""
    config = Path(drafter or "") / "config.json"
    if method == "dflash" and config.is_file():
        block = json.loads(config.read_text()).get("block_size")
        return int(block) - 1 if block else 7
    return 7 if method == "dflash" else 4


def segments(job: Job) -> tuple[list[int], int]:
    """Where the timed stretches of a continuation start, and their length."""
    tokens, rounds = job["tokens"], INTERPRETED_ROUNDS if interpreted(job) else ROUNDS
    length = min(SEGMENT, tokens)
    return [round(number * (tokens - length) / (rounds - 1)) for number in range(rounds)], length


def has_gpu() -> bool:
    """Whether a driver's device is here; asked without starting anything on it."""
    return any(Path(f"/dev/{name}").exists() for name in ("nvidiactl", "kfd", "dxg"))


def _common(job: Job, target: str, lengths: list[int], most: int, *, gpu: bool) -> dict[str, Any]:
    longest = max(lengths) + job["tokens"]
    found: dict[str, Any] = {
        "model": target,
        "dtype": job["dtype"],
        "seed": job["seed"],
        # With room, or the drafts of the whole batch are dropped near the end.
        "max_model_len": longest + 2 * (most + 1) + 16,
        "max_num_seqs": len(lengths) + 1,
        "disable_log_stats": False,
    }
    if not gpu:
        # There are no graphs to lose, and compiling would take longer than everything else.
        found["enforce_eager"] = True
    if job["prompts"] is not None and not any("text" in one for one in job["prompts"]):
        found["skip_tokenizer_init"] = True
    if job["model"] is None:
        found |= {"block_size": 32, "num_gpu_blocks_override": 128, "skip_tokenizer_init": True}
    return found


def _with_trees(job: Job, budget: int, *, chain: bool, gpu: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {"budget": budget}
    if chain:
        settings["max_siblings"] = 1
    found: dict[str, Any] = {"additional_config": {"ddtree": settings}}
    if gpu:
        # What the runtime asks for; the stock chain keeps its own, better settings.
        settings["allow_untested_device"] = True
        found["compilation_config"] = {"cudagraph_mode": "PIECEWISE"}
        if not {"attention_backend", "attention_config"} & set(job["engine"]):
            found["attention_backend"] = "TRITON_ATTN"
        if job["runner"] == "v1":
            found["async_scheduling"] = False
    return found


def _oracle(job: Job, nodes: int, lengths: list[int]) -> dict[str, Any]:
    """The oracle's engine: prompts come in chunks, and in the tiny model's cache not all fit.

    The V2 runner takes no proposer class, so that an oracle takes its drafter's place; see
    `runner_v2`.
    """
    found: dict[str, Any] = {
        "max_num_batched_tokens": max(128, (nodes + 1) * (len(lengths) + 1) + 3),
    }
    if job["runner"] == "v1":
        package = __name__.rpartition(".")[0]
        found["speculative_config"] = {
            "method": "custom_class",
            "model": f"{package}.oracle.Oracle",
            "num_speculative_tokens": nodes,
        }
    if job["model"] is None:
        found["num_gpu_blocks_override"] = 40
    return found
