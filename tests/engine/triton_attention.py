"""A change of vLLM for one case: a GPU's attention backend and the project's own kernels, on a CPU.

The CPU platform always takes the backend that is registered as its own. Where the runtime would
pick its kernels by the device, they are picked here, and Triton's interpreter runs them.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from ddtree_runtime import accept, attention, cache, prepare
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

_CAPABILITY = torch.cuda.get_device_capability
_STOCK = AttentionBackendEnum.CPU_ATTN.get_path()
_FORMS: tuple[tuple[Any, str], ...] = (
    (accept, "walk"),
    (attention, "tree_attention"),
    (cache, "commit"),
    (prepare, "ancestors"),
)
_KEPT = [getattr(module, name) for module, name in _FORMS]

CALLS: dict[str, int] = {}


def make() -> None:
    """Register the Triton backend, and count the calls of the runtime's kernels."""
    CALLS.clear()
    path = "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"
    register_backend(AttentionBackendEnum.CPU_ATTN, path)
    # The backend asks the card for its generation to choose a tile of its cache update.
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    for (module, name), stock in zip(_FORMS, _KEPT, strict=True):
        setattr(module, name, _counted(name, stock))


def undo() -> None:
    """Give vLLM and the runtime what they had.

    Raises:
        RuntimeError: a kernel was never called.
    """
    torch.cuda.get_device_capability = _CAPABILITY
    register_backend(AttentionBackendEnum.CPU_ATTN, _STOCK)
    for (module, name), stock in zip(_FORMS, _KEPT, strict=True):
        setattr(module, name, stock)
    if CALLS and set(CALLS) != {name for _, name in _FORMS}:
        raise RuntimeError(f"expected calls of all kernels, found {CALLS}")


def _counted(name: str, function: Any) -> Any:
    # Without a GPU there is no number of multiprocessors to choose the splits by.
    given = {"num_splits": 2} if name == "tree_attention" else {}

    @functools.wraps(function)
    def counted(*args: Any, **named: Any) -> Any:
        CALLS[name] = CALLS.get(name, 0) + 1
        return function(*args, **named, **given, form="kernel")

    return counted
