"""A tiny vLLM of our own: two runners, one sampler, one drafter, and places to hook things in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from . import overlay

# The runner calls this where code that has nothing to do with acceptance stands.
BESIDE = "vllm/v1/core/beside.py"
DRAFTER = "vllm/v1/spec_decode/drafter.py"


def install(root: Path, module: str, more: Mapping[str, str] | None = None) -> Path:
    """A tiny vLLM with a V1 and a V2 runner whose sampler decides with the `verify` of `module`."""
    return overlay.mini_install(root, files(module) | dict(more or {}))


def files(module: str) -> dict[str, str]:
    """The files of the tiny vLLM, by path."""
    call = overlay.call_of(module)
    return overlay.topology_file() | {
        "vllm/__init__.py": "",
        "vllm/v1/__init__.py": "",
        "vllm/v1/core/__init__.py": "",
        "vllm/v1/core/beside.py": _NOTHING_BESIDE,
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


_NOTHING_BESIDE = """
def hook(runner, scheduler_output):
    return None
"""

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
from vllm.v1.core.beside import hook
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
        self.extra = hook(self, scheduler_output)
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
