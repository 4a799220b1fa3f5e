"""A whole fork: drafts a tree, masks it, and, if it walks it as well, moves the accepted rows."""

from __future__ import annotations

DRAFTER = '''
import torch


class Drafter:
    """Draws `width` candidates below every node of a level, and goes on with all of them."""

    def __init__(self, model, width):
        self.model = model
        self.width = width

    def propose(self, hidden_states, last_tokens):
        level = last_tokens[:, :1]
        rows, _ = level.shape
        tokens, parents = [], []
        above = torch.zeros_like(level)
        start = 1
        for _ in range(3):
            hidden_states = self.model(level, hidden_states)
            logits = self.model.compute_logits(hidden_states)
            level = torch.topk(logits, self.width, dim=-1).indices.view(rows, -1)
            tokens.append(level)
            parents.append(above.repeat_interleave(self.width, dim=1))
            count = level.shape[1]
            above = start + torch.arange(count, device=level.device).expand(rows, count)
            start += count
            hidden_states = hidden_states.repeat_interleave(self.width, dim=1)
        return torch.cat(tokens, dim=1), torch.cat(parents, dim=1)
'''

MASK = '''
import torch


def visible(parents):
    """Each node sees itself and what its parent sees; 0 where it may look, else minus infinity."""
    rows, nodes = parents.shape
    seen = torch.zeros(rows, nodes, nodes, dtype=torch.bool, device=parents.device)
    each = torch.arange(rows, device=parents.device)
    seen[:, 0, 0] = True
    for node in range(1, nodes):
        seen[:, node] = seen[each, parents[:, node]]
        seen[:, node, node] = True
    return torch.zeros_like(seen, dtype=torch.float32).masked_fill(~seen, float("-inf"))
'''

BACKEND = """
import torch

from vllm.v1.attention.mask import visible


class MetadataBuilder:
    def build(self, common):
        return Metadata(common.slots, visible(common.parents))


class Metadata:
    def __init__(self, slots, bias):
        self.slots = slots
        self.bias = bias


class AttentionImpl:
    def forward(self, query, key, value, cache, metadata):
        cache[0][metadata.slots] = key
        cache[1][metadata.slots] = value
        scores = query @ cache[0][metadata.slots].transpose(-1, -2)
        return torch.softmax(scores + metadata.bias, dim=-1) @ cache[1][metadata.slots]
"""

COMMIT = '''
def keep_path(caches, slots, path, length):
    """Move the rows of the accepted path into the slots that a chain would have used."""
    source = slots.gather(1, path)[:, :length].flatten()
    destination = slots[:, :length].flatten()
    for cache in caches:
        cache[:, destination] = cache[:, source].clone()
'''

RUNNER = """
from vllm.v1.attention.backends.masked import MetadataBuilder
from vllm.v1.core.commit import keep_path
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler
from vllm.v1.spec_decode.drafter import Drafter


class GPUModelRunner:
    def __init__(self, vllm_config, model):
        self.model = model
        self.kv_caches = []
        self.builder = MetadataBuilder()
        self.sampler = Sampler()
        self.rejection_sampler = RejectionSampler(self.sampler)
        self.drafter = Drafter(model, vllm_config.num_speculative_tokens)
        self.state = None

    def execute_model(self, scheduler_output):
        metadata = scheduler_output.metadata
        attention = self.builder.build(metadata)
        positions = metadata.root + metadata.depths
        hidden_states = self.model(scheduler_output.input_ids, positions, attention)
        self.state = hidden_states, self.model.compute_logits(hidden_states), metadata

    def sample_tokens(self):
        hidden_states, logits, metadata = self.state
        if metadata is None:
            return self.sampler(logits)
        output = self.rejection_sampler(metadata, logits)
        KEEP
        return output, self.drafter.propose(hidden_states, output)
"""
_KEEP = "keep_path(self.kv_caches, metadata.slots, metadata.path, output.shape[1])"


def files(*, commits: bool) -> dict[str, str]:
    """The files to lay over the tiny vLLM; both of its runners become the fork's."""
    runner = RUNNER.replace("KEEP", _KEEP if commits else "self.last = output")
    return {
        "vllm/v1/attention/__init__.py": "",
        "vllm/v1/attention/mask.py": MASK,
        "vllm/v1/attention/backends/__init__.py": "",
        "vllm/v1/attention/backends/masked.py": BACKEND,
        "vllm/v1/core/commit.py": COMMIT,
        "vllm/v1/spec_decode/drafter.py": DRAFTER,
        "vllm/v1/worker/gpu_model_runner.py": runner,
        "vllm/v1/worker/gpu/model_runner.py": runner,
    }
