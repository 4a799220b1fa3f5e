"""Write keys and values into a layer's cache by the layer's own means, whichever release it is of.

Since 0.24.0 every backend that is served has an update of its own. Before that, the CPU backend
wrote its cache while it attended; the operator that it used can be called all the same.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import torch


def is_apart(layer: Any) -> bool:
    """Whether the cache is written before attention is called, and not while it runs."""
    return hasattr(layer.impl, "do_kv_cache_update")


def is_known(layer: Any) -> bool:
    """Whether `write` can write this layer's cache."""
    return is_apart(layer) or hasattr(_module(layer), "_get_attn_isa")


def write(
    layer: Any, key: torch.Tensor, value: torch.Tensor, cache: torch.Tensor, slots: torch.Tensor
) -> None:
    """Write rows into a cache of the layer's shape.

    Args:
        layer: an attention layer of which `is_known` holds.
        key: [T, KV heads, dim].
        value: as `key`.
        cache: the layer's own, or one like it.
        slots: [T] int64.
    """
    if is_apart(layer):
        layer.impl.do_kv_cache_update(layer, key, value, cache, slots)
        return
    module, keys, values = _module(layer), *halves(cache)
    isa = module._get_attn_isa(cache.dtype, keys.shape[2], key.shape[2])
    module.ops.cpu_attn_reshape_and_cache(key, value, keys, values, slots, isa)


def halves(cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The halves of a CPU cache for keys and for values, [blocks, heads, block, dim] each.

    Up to 0.22.1 it is (2, blocks, heads, block, dim); since then (blocks, heads, block, 2 * dim),
    of which a block's first half is the keys'. How rows are packed in a half is another question.
    """
    if cache.dim() == 5:
        return cache[0], cache[1]
    blocks, heads, block, _ = cache.shape
    parted = cache.view(blocks, heads, 2 * block, -1)
    return parted[:, :, :block], parted[:, :, block:]


def _module(layer: Any) -> ModuleType:
    return sys.modules[type(layer.impl).__module__]
