"""Engines that call a `verify` of ours: inside real releases, and inside a tiny vLLM of our own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import overlay

# Where each real release keeps the function that decides on acceptance, and what it calls things.
_V1 = "vllm/v1/sample/rejection_sampler.py"
_V2 = "vllm/v1/worker/gpu/spec_decode/rejection_sampler_utils.py"
_V1_NAMES = {"tokens": "draft_token_ids", "target": "target_logits.argmax(dim=-1)"}
_V2_NAMES = {"tokens": "draft_sampled", "target": "target_logits.argmax(dim=-1)"}


def in_release(base: Path, root: Path, module: str, place: str, *, keep: bool = False) -> Path:
    """The release `base` whose every runner decides with the `verify` of `module`.

    Args:
        place: the new module's path, such as `vllm/v1/sample/accept.py`.
        keep: leave the stock code behind the call, as a fork with a fallback does.
    """
    calls = {_V1: _v1_call(module), _V2: _v2_call(module)}
    files = overlay.topology_file() | {place: module}
    for path, body in calls.items():
        if (base / path).is_file():
            hook = _imports(place) + (_guarded(body) if keep else body)
            source = (base / path).read_text()
            files[path] = overlay.with_body(source, "rejection_sample", hook, keep=keep)
    return overlay.overlay(base, root, files)


def _v1_call(module: str) -> str:
    return f"return {overlay.call_of(module, _V1_NAMES)}\n"


def _v2_call(module: str) -> str:
    call = overlay.call_of(module, _V2_NAMES)
    return f"output = {call}\nreturn output, (output >= 0).sum(dim=-1)\n"


def _imports(place: str) -> str:
    dotted = place.removesuffix(".py").replace("/", ".")
    lines = ("from vllm.v1.sample.topology import current", f"from {dotted} import {overlay.ENTRY}")
    return "\n".join(lines) + "\n"


def _guarded(body: str) -> str:
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    return f"if current() is not None:\n{inner}"


def in_mini(root: Path, module: str, more: Mapping[str, str] | None = None) -> Path:
    """A tiny vLLM with a V1 and a V2 runner whose sampler decides with the `verify` of `module`."""
    return overlay.mini_install(root, mini_files(module) | dict(more or {}))


def mini_files(module: str) -> dict[str, str]:
    """The files of the tiny vLLM, by path."""
    call = overlay.call_of(module)
    return overlay.topology_file() | {
        "vllm/__init__.py": "",
        "vllm/v1/__init__.py": "",
        "vllm/v1/sample/__init__.py": "",
        "vllm/v1/sample/accept.py": module,
        "vllm/v1/sample/sampler.py": _SAMPLER,
        "vllm/v1/sample/rejection_sampler.py": _REJECTION_SAMPLER.replace("CALL", call),
        "vllm/v1/spec_decode/__init__.py": "",
        "vllm/v1/spec_decode/drafter.py": _DRAFTER,
        "vllm/v1/worker/__init__.py": "",
        "vllm/v1/worker/gpu_worker.py": _WORKER,
        "vllm/v1/worker/gpu_model_runner.py": _RUNNER,
        "vllm/v1/worker/gpu/__init__.py": "",
        "vllm/v1/worker/gpu/model_runner.py": _RUNNER,
        "vllm/platforms/__init__.py": "",
        "vllm/platforms/cuda.py": _PLATFORM,
    }


_SAMPLER = """
import torch
from torch import nn


class Sampler(nn.Module):
    def forward(self, logits):
        return torch.softmax(logits, dim=-1).multinomial(1)
"""

_REJECTION_SAMPLER = """
from torch import nn

from vllm.v1.sample.accept import verify
from vllm.v1.sample.topology import current


class RejectionSampler(nn.Module):
    def __init__(self, sampler):
        super().__init__()
        self.sampler = sampler

    def forward(self, metadata, logits):
        tokens = metadata.draft_token_ids
        target = logits.argmax(dim=-1)
        return CALL
"""

_DRAFTER = """
class Drafter:
    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        tokens = []
        for _ in range(self.width):
            hidden_states = self.model(last_tokens, hidden_states)
            last_tokens = self.model.compute_logits(hidden_states).argmax(dim=-1)
            tokens.append(last_tokens)
        return tokens
"""

_WORKER = """
from vllm.v1.worker.gpu.model_runner import GPUModelRunner as NewRunner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


class Worker:
    def __init__(self, vllm_config, model):
        runner = NewRunner if vllm_config.use_v2_model_runner else GPUModelRunner
        self.model_runner = runner(vllm_config, model)

    def execute_model(self, scheduler_output):
        self.model_runner.execute_model(scheduler_output)
        return self.model_runner.sample_tokens()
"""

_RUNNER = """
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler
from vllm.v1.spec_decode.drafter import Drafter


class GPUModelRunner:
    def __init__(self, vllm_config, model):
        self.model = model
        self.sampler = Sampler()
        self.rejection_sampler = RejectionSampler(self.sampler)
        self.drafter = Drafter(model, vllm_config.num_speculative_tokens)
        self.state = None

    def execute_model(self, scheduler_output):
        metadata = scheduler_output.metadata
        hidden_states = self.model(scheduler_output.input_ids, scheduler_output.positions)
        self.state = hidden_states, self.model.compute_logits(hidden_states), metadata

    def sample_tokens(self):
        hidden_states, logits, metadata = self.state
        output = self._sample(logits, metadata)
        drafts = self.drafter.propose(hidden_states, output)
        return output, drafts

    def _sample(self, logits, metadata):
        if metadata is None:
            return self.sampler(logits)
        return self.rejection_sampler(metadata, logits)
"""

_PLATFORM = """
class CudaPlatform:
    @classmethod
    def check_and_update_config(cls, vllm_config):
        if vllm_config.parallel_config.worker_cls == "auto":
            vllm_config.parallel_config.worker_cls = "vllm.v1.worker.gpu_worker.Worker"
"""
