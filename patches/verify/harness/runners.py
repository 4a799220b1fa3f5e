"""Which of vLLM's model runners works in a verification, and what it needs to work here."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import events, plan

Job = dict[str, Any]

FILE = "runner"
# What the modules of the V2 runner's classes begin with.
V2 = "vllm.v1.worker.gpu."


def known(job: Job, folder: Path) -> Job:
    """The job with its runner; None in its place as long as nobody has asked vLLM."""
    path = folder / FILE
    if job["runner"] is not None:
        return job
    if path.exists():
        return {**job, "runner": path.read_text()}
    # Where the target's own environment says it, vLLM does as it is told.
    told = os.environ.get(plan.RUNNER)
    return {**job, "runner": {"0": "v1", "1": "v2"}.get(told or "")}


def settled(job: Job, folder: Path) -> Job:
    """The job with its runner: asked for, or what this vLLM takes for the stock chain's engine."""
    job = known(job, folder)
    if job["runner"] is None:
        runner = _taken(plan.chain(job, folder))
        (folder / FILE).write_text(runner)
        job = {**job, "runner": runner}
    # Engines without a drafter, or with another one, run on the same runner.
    os.environ[plan.RUNNER] = plan.RUNNERS[job["runner"]]
    return job


def bring_triton(folder: Path) -> None:
    """Let the V2 runner find a device of Triton's in this process, which interprets kernels.

    Nowhere else may it be found: vLLM would believe that Triton works.
    """
    sys.path.insert(0, str(folder / plan.STANDIN))
    try:
        version("vllm")
    except PackageNotFoundError:
        sys.path.insert(0, str(folder / plan.NAME))


def refuse_without_triton(job: Job) -> None:
    """Say why the V2 runner cannot work here, before vLLM says it in another way.

    Raises:
        Unable: the V2 runner was asked for, and Triton is not installed.
    """
    if job["runner"] != "v2":
        return
    try:
        import triton
    except ImportError as error:
        raise events.Unable(f"{plan.NO_TRITON} ({error})") from None
    del triton


def kind(runner: Any) -> str:
    """Which runner an object is: "v1" or "v2"."""
    modules = (base.__module__ for base in type(runner).__mro__)
    return "v2" if any(module.startswith(V2) for module in modules) else "v1"


def _taken(engine: dict[str, Any]) -> str:
    from vllm import envs
    from vllm.engine.arg_utils import EngineArgs

    config = EngineArgs(**engine).create_engine_config()
    # Before 0.24.0 the variable alone decided.
    taken = getattr(config, "use_v2_model_runner", envs.VLLM_USE_V2_MODEL_RUNNER)
    return "v2" if taken else "v1"
