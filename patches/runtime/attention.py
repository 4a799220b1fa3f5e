"""Attention of the target's layers while a step's rows are trees."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .active import ACTIVE
from .kernels.tree.attention import tree_attention
from .step import Masked, Step
from .update import is_apart

# Whether trees are put around the layers: the operator keeps the function that it was made of, so
# that what is assigned to its name later changes nothing.
through_layers = False


def forward(function: Callable[..., None], *args: Any, **named: Any) -> None:
    """Attend as usual; then give the rows of trees their ancestors only.

    Args:
        function: vLLM's `unified_attention_with_output`.
        args: its arguments.
        named: its arguments.
    """
    if ACTIVE.masked is None:
        return function(*args, **named)
    return _masked(function, *args, **named)


def _masked(
    function: Callable[..., None],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    layer_name: Any,
    *rest: Any,
    **named: Any,
) -> None:
    """Attend in a step with trees.

    Args:
        function: vLLM's `unified_attention_with_output`.
        query: [T, heads, dim].
        key: [T, KV heads, dim], which the cache holds once the function has run, if not before.
        value: as `key`.
        output: [T, heads, dim], written here.
        layer_name: the layer, by name or as vLLM encodes it.
        rest: further arguments of the function.
        named: further arguments of the function.
    """
    scope = function.__globals__
    name: str = scope["_resolve_layer_name"](layer_name)
    metadata, layer, _, _ = scope["get_attention_context"](name)
    step = ACTIVE.masked
    if step is None or metadata is None:
        return function(query, key, value, output, layer_name, *rest, **named)
    masked = step.masked_of(metadata)
    # Where attention itself writes the cache, it has to run, although its output is not wanted.
    if not masked.alone or not is_apart(layer):
        function(query, key, value, output, layer_name, *rest, **named)
    attend(step, masked, name, layer, query, output)
    return None


def hook_into(name: str, layer: Any) -> None:
    """Put the tree around the attention of one layer, where the operator cannot be hooked.

    Args:
        name: the layer's.
        layer: a layer of the target, whose implementation is its own.
    """
    if "forward" not in vars(layer.impl):
        layer.impl.forward = functools.partial(layer_forward, layer.impl.forward, name)


def layer_forward(
    function: Callable[..., Any],
    name: str,
    layer: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    kv_cache: Any,
    metadata: Any,
    *rest: Any,
    output: torch.Tensor,
    **named: Any,
) -> Any:
    """What `forward` does, in the place of one layer's `impl.forward`.

    Args:
        function: the implementation's own.
        name: the layer's.
        layer: the layer.
        query: as `forward` takes it, and so are `key`, `value` and `output`.
        key: handed on.
        value: handed on.
        kv_cache: handed on.
        metadata: of the layer's group; None while memory is profiled.
        rest: handed on.
        output: written here.
        named: handed on.
    """
    given = (layer, query, key, value, kv_cache, metadata, *rest)
    step = ACTIVE.masked
    if step is None or metadata is None:
        return function(*given, output=output, **named)
    masked = step.masked_of(metadata)
    if not masked.alone or not is_apart(layer):
        function(*given, output=output, **named)
    attend(step, masked, name, layer, query, output=output)
    return output


def attend(
    step: Step,
    masked: Masked,
    name: str,
    layer: Any,
    query: torch.Tensor,
    output: torch.Tensor,
) -> None:
    """Write the output rows of the step's trees in one layer, and note that it was done."""
    cache = step.caches.of(name, layer)
    keys, values, table = cache.of_blocks(masked.table, masked.seq_lens_host)
    rows = masked.rows
    own = query[: masked.total] if rows is None else query.index_select(0, rows)
    result = tree_attention(
        own,
        keys,
        values,
        table,
        masked.seq_lens,
        masked.query_start,
        masked.visible,
        masked.is_chain,
        scale=layer.impl.scale,
        max_query_len=max(masked.query_lens),
        max_seq_len=min(masked.max_seq_len, table.shape[1] * keys.shape[1]),
        out=output[: masked.total] if rows is None else None,
        query_lens=masked.query_lens if masked.seq_lens_host is not None else None,
        seq_lens_host=masked.seq_lens_host,
    )
    if rows is not None:
        output.index_copy_(0, rows, result)
    step.layers_masked.add(name)
