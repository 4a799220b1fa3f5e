"""Plug-ins beside an engine: distributions whose entry points change it at run time."""

from __future__ import annotations

from . import overlay

# A walk of the plug-in's own, and a chain of its own.
WALK = """
import torch


def accept(parents, tokens, target):
    current = torch.zeros_like(parents[:, :1])
    out = torch.full_like(target, -1)
    alive = torch.ones_like(current, dtype=torch.bool)
    for depth in range(parents.shape[1]):
        wanted = target.gather(1, current)
        out[:, depth : depth + 1] = torch.where(alive, wanted, -1)
        match = (parents == current) & (tokens == wanted)
        alive = alive & match.any(dim=1, keepdim=True)
        current = torch.where(alive, match.int().argmax(dim=1, keepdim=True), current)
    return out
"""
CHAIN = """
import torch


def accept(parents, tokens, target):
    same = (tokens[:, 1:] == target[:, :-1]).int()
    length = torch.cumprod(same, dim=1).sum(dim=1, keepdim=True)
    positions = torch.arange(target.shape[1], device=target.device)
    return torch.where(positions <= length, target, -1)
"""

_METHOD = """
def register():
    from vllm.v1.sample.rejection_sampler import RejectionSampler
    from walker.accept import accept

    def forward(self, metadata, logits, *rest):
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

    RejectionSampler.forward = forward
"""
_SETATTR = """
import vllm.v1.sample.rejection_sampler as stock

from walker.accept import accept


def _forward(self, metadata, logits, *rest):
    return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))


def register():
    setattr(stock.RejectionSampler, "forward", _forward)
"""
_CLASS = """
from torch import nn

from walker.accept import accept


class WalkingSampler(nn.Module):
    def __init__(self, sampler, *rest):
        super().__init__()
        self.sampler = sampler

    def forward(self, metadata, logits, *rest):
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))


def register():
    from vllm.v1.worker import gpu_model_runner

    gpu_model_runner.RejectionSampler = WalkingSampler
"""
_RUNNER = """
def register():
    from walker.patches import apply

    apply()
"""
_RUNNER_PATCHES = """
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from walker.accept import accept


def apply():
    stock = GPUModelRunner._sample

    def _sample(self, logits, metadata, *rest):
        if metadata is None:
            return stock(self, logits, metadata, *rest)
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

    GPUModelRunner._sample = _sample
"""
_PLATFORM = """
from vllm.platforms.cuda import CudaPlatform


class WalkingPlatform(CudaPlatform):
    @classmethod
    def check_and_update_config(cls, vllm_config):
        vllm_config.parallel_config.worker_cls = "walker.worker.WalkingWorker"


def register():
    return "walker.WalkingPlatform"
"""
_PLATFORM_WORKER = """
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.gpu_worker import Worker

from walker.accept import accept


class WalkingRunner(GPUModelRunner):
    def _sample(self, logits, metadata):
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))


class WalkingWorker(Worker):
    def __init__(self, vllm_config, model):
        super().__init__(vllm_config, model)
        self.model_runner = WalkingRunner(vllm_config, model)
"""
_MODEL = """
def register():
    from vllm import ModelRegistry

    ModelRegistry.register_model("WalkerForCausalLM", "walker.model:WalkerForCausalLM")
"""

# Each replaces the verifier in another way, with whatever `walker.accept` does.
REPLACING = {
    "method": ("vllm.general_plugins", {"walker/__init__.py": _METHOD}),
    "setattr": ("vllm.general_plugins", {"walker/__init__.py": _SETATTR}),
    "class": ("vllm.general_plugins", {"walker/__init__.py": _CLASS}),
    "runner": (
        "vllm.general_plugins",
        {"walker/__init__.py": _RUNNER, "walker/patches.py": _RUNNER_PATCHES},
    ),
    "platform": (
        "vllm.platform_plugins",
        {"walker/__init__.py": _PLATFORM, "walker/worker.py": _PLATFORM_WORKER},
    ),
}
# Each carries `walker.accept` along and leaves the verifier alone.
HARMLESS = {
    "model": ("vllm.general_plugins", {"walker/__init__.py": _MODEL}),
    "foreign-group": ("other_server.plugins", {"walker/__init__.py": _METHOD}),
}

# A method for the stock sampler.
FORWARD = """
from walker.accept import accept


def _forward(self, metadata, logits, *rest):
    return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))


"""
# Replacements that nothing tells about: whatever `accept` does, the verdict is open.
UNREADABLE = {
    "a value from elsewhere": {
        "walker/__init__.py": """
import outside


def register():
    from vllm.v1.sample.rejection_sampler import RejectionSampler

    RejectionSampler.forward = outside.forward
"""
    },
    "a finder of modules": {
        "walker/__init__.py": FORWARD
        + """
import sys


class Finder:
    def find_spec(self, name, path, target=None):
        return None


def register():
    sys.meta_path.insert(0, Finder())
"""
    },
    "another module": {
        "walker/__init__.py": """
import sys

from walker import mine


def register():
    sys.modules["vllm.v1.sample.rejection_sampler"] = mine
""",
        "walker/mine.py": "from walker.accept import accept\n",
    },
    "what is told its name": {
        "walker/__init__.py": FORWARD
        + """
def register():
    from unittest import mock

    mock.patch("vllm.v1.sample.rejection_sampler.verify", _forward).start()
"""
    },
    "what is told of its import": {
        "walker/__init__.py": FORWARD
        + """
from outside import when_imported


@when_imported("vllm.v1.sample.rejection_sampler")
def _patch(module):
    module.RejectionSampler.forward = _forward


def register():
    pass
"""
    },
    "the call of its objects": {
        "walker/__init__.py": FORWARD
        + """
def register():
    from vllm.v1.sample.rejection_sampler import RejectionSampler

    RejectionSampler.__call__ = _forward
"""
    },
    "an object from elsewhere": {
        "walker/__init__.py": FORWARD
        + """
def register():
    import outside

    outside.find("GPUModelRunner")._sample = _forward
"""
    },
}


def plugin(group: str, modules: dict[str, str], accept: str) -> dict[str, str]:
    """The files of a distribution whose entry point in `group` calls `walker.register`."""
    points = f"[{group}]\nwalker = walker:register\n"
    metadata = overlay.distribution("vllm-walker", "0.1.0", points)
    return metadata | modules | {"walker/accept.py": accept}
