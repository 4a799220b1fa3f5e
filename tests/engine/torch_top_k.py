"""A change of vLLM for one case: top-k and top-p in torch, as on a CPU without Triton.

Triton's interpreter does not run vLLM's own kernel for them (0.32.0): it takes a number for a
tensor.
"""

from __future__ import annotations

from vllm.v1.sample.ops import topk_topp_sampler

_STOCK = topk_topp_sampler.HAS_TRITON


def make() -> None:
    """Let the module believe that there is no Triton."""
    topk_topp_sampler.HAS_TRITON = False


def undo() -> None:
    """Give it back what it knew."""
    topk_topp_sampler.HAS_TRITON = _STOCK
