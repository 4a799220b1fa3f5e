"""A change of vLLM for one case: a GPU's attention backend and the project's own kernels, on a CPU.

The CPU platform always takes the backend that is registered as its own. Where the runtime would
pick its kernels by the device, they are picked here, and Triton's interpreter runs them.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from ddtree_runtime import accept, attention, cache, engine, prepare
from ddtree_runtime.active import ACTIVE
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
_CHECK_LAYER = engine.check_layer

CALLS: dict[str, int] = {}
# The attention backend of each of the target's layers, as the runtime found it.
LAYERS: dict[str, str] = {}
# Calls of the tree's attention in steps that held pieces of prompts too.
MIXED: list[bool] = []


def make() -> None:
    """Register the Triton backend, and count the calls of the runtime's kernels."""
    for seen in (CALLS, LAYERS, MIXED):
        seen.clear()
    path = "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"
    register_backend(AttentionBackendEnum.CPU_ATTN, path)
    # The backend asks the card for its generation to choose a tile of its cache update.
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    for (module, name), stock in zip(_FORMS, _KEPT, strict=True):
        setattr(module, name, _counted(name, stock))
    engine.check_layer = _check_layer


def undo() -> None:
    """Give vLLM and the runtime what they had.

    Raises:
        RuntimeError: a kernel was never called, a layer of the target has another backend, or no
            step held trees beside pieces of prompts.
    """
    torch.cuda.get_device_capability = _CAPABILITY
    register_backend(AttentionBackendEnum.CPU_ATTN, _STOCK)
    for (module, name), stock in zip(_FORMS, _KEPT, strict=True):
        setattr(module, name, stock)
    engine.check_layer = _CHECK_LAYER
    if set(CALLS) != {name for _, name in _FORMS}:
        raise RuntimeError(f"expected calls of all kernels, found {CALLS}")
    if set(LAYERS.values()) != {"TRITON_ATTN"}:
        raise RuntimeError(f"expected Triton's attention in every layer, found {LAYERS}")
    if not any(MIXED):
        raise RuntimeError(f"expected prompts beside trees, found none in {len(MIXED)} calls")


def _check_layer(name: str, layer: Any) -> None:
    implemented = isinstance(layer.impl, layer.attn_backend.get_impl_cls())
    LAYERS[name] = layer.attn_backend.get_name() if implemented else type(layer.impl).__name__
    _CHECK_LAYER(name, layer)


def _is_mixed() -> bool:
    """Whether the step whose trees are attended to has rows of no tree and no chain."""
    step = ACTIVE.masked
    if step is None:
        return False
    rows = step.first_rows[-1] + step.drafts[-1] + 1
    return bool(rows > sum(drafted + 1 for drafted in step.drafts))


def _counted(name: str, function: Any) -> Any:
    # Without a GPU there is no number of multiprocessors to choose the splits by.
    given = {"num_splits": 2} if name == "tree_attention" else {}

    @functools.wraps(function)
    def counted(*args: Any, **named: Any) -> Any:
        CALLS[name] = CALLS.get(name, 0) + 1
        if name == "tree_attention":
            MIXED.append(_is_mixed())
        return function(*args, **named, **given, form="kernel")

    return counted
