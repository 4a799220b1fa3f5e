"""A change of vLLM for one case: the V2 runner forbids what a grammar does not allow in torch.

Triton's interpreter does not run vLLM's own kernel for it (0.32.0): its mask is no truth value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from vllm.v1.worker.gpu import structured_outputs

_STOCK = structured_outputs._apply_grammar_bitmask_kernel


class _Kernel:
    """What is called in the kernel's place; a grid means nothing to it."""

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        """Take the grid as Triton does."""
        return _apply


def _apply(
    logits: torch.Tensor,
    logits_stride: int,
    places: torch.Tensor,
    starts: torch.Tensor,
    bits: torch.Tensor,
    bits_stride: int,
    vocabulary: int,
    **sizes: Any,
) -> None:
    request, row = places.long() // sizes["MASK_STRIDE"], places.long() % sizes["MASK_STRIDE"]
    first = starts[request].long()
    there = row < starts[request + 1] - first
    single = (bits[:, :, None] >> torch.arange(32)) & 1
    forbidden = single.flatten(1)[:, :vocabulary] == 0
    rows = (first + row)[there]
    logits[rows] = logits[rows].masked_fill(forbidden[there], -float("inf"))


def make() -> None:
    """Put it in the kernel's place."""
    structured_outputs._apply_grammar_bitmask_kernel = _Kernel()


def undo() -> None:
    """Give vLLM its kernel back."""
    structured_outputs._apply_grammar_bitmask_kernel = _STOCK
