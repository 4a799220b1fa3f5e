"""Compares attention kernels on the inputs that a bfloat16 engine gives them.

Started by path in a patched environment: `probe.py ENGINE PASS RESULT`, three JSON files: the
arguments of `LLM`, the prompts and parameters of a pass, and the errors of both kernels in some of
the calls that verify a chain of drafts. The engine is the stock one: trees are not configured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ddtree_runtime import hooks
from ddtree_runtime.cache import Caches
from ddtree_runtime.kernels.tree.attention import reference, tree_attention
from worker import one_pass

# Calls between two that are looked at, a number without a factor in common with the layers'.
EVERY, MOST = 13, 24


class Probe:
    """Stands in the place of the runtime's attention hook."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.calls = 0
        self.caches = Caches()
        self.found: list[dict[str, dict[str, float]]] = []

    def __call__(
        self,
        function: Callable[..., None],
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        output: torch.Tensor,
        layer_name: Any,
        *rest: Any,
        **named: Any,
    ) -> None:
        """Attend as the engine does; then look at some of the calls."""
        function(query, key, value, output, layer_name, *rest, **named)
        scope = function.__globals__
        name = scope["_resolve_layer_name"](layer_name)
        metadata, layer, _, _ = scope["get_attention_context"](name)
        # A verification has several rows a request, and no request has many.
        if metadata is None or not metadata.causal or not 1 < metadata.max_query_len < 16:
            return
        self.calls += 1
        if self.calls % EVERY == 0 and len(self.found) < MOST:
            self.found.append(self.compare(name, layer, metadata, query, output))

    def compare(
        self, name: str, layer: Any, metadata: Any, query: torch.Tensor, output: torch.Tensor
    ) -> dict[str, dict[str, float]]:
        """The errors of every kernel for one call."""
        cache = self.caches.of(name, layer)
        lengths = metadata.seq_lens.tolist()
        keys, values, table = cache.of_blocks(metadata.block_table, lengths)
        start = metadata.query_start_loc.to(torch.int32)
        rows = int(start[-1])
        shapes = (table, metadata.seq_lens.to(torch.int32), start)
        requests = len(lengths)
        mask = (torch.zeros(requests, 1, 1, dtype=torch.int64), torch.ones(requests).bool())
        scale = layer.impl.scale
        given = (query[:rows].contiguous(), keys, values, *shapes, *mask)
        sizes = {"max_query_len": int(start.diff().max()), "max_seq_len": max(lengths)}
        hosts = {"query_lens": start.diff().tolist(), "seq_lens_host": lengths}
        exact = reference.attend(*given, scale=scale)
        ours = tree_attention(*given, scale=scale, **sizes, **hosts)
        # [rows, heads, dim], whatever shape the engine keeps it in.
        theirs = output.view(len(output), *exact.shape[1:])[:rows]
        return {"engine": errors(theirs, exact), "tree": errors(ours, exact)}


def errors(have: torch.Tensor, exact: torch.Tensor) -> dict[str, float]:
    """How far a bfloat16 result is from float64.

    `rms` and `largest` are relative to the root mean square of the exact result; `nearest` is the
    share of elements that are the bfloat16 number nearest to the exact one.
    """
    size = exact.square().mean().sqrt()
    off = have.double() - exact
    return {
        "rms": float(off.square().mean().sqrt() / size),
        "largest": float(off.abs().max() / size),
        "nearest": float((have == exact.to(have.dtype)).double().mean()),
    }


def main() -> None:
    """Run one pass with the probe in place, and write what it found."""
    probe = hooks.HANDLERS["attention.forward"] = Probe()
    # vLLM takes the handler when it is imported.
    from vllm import LLM

    engine = LLM(**json.loads(Path(sys.argv[1]).read_text())).llm_engine
    one_pass(engine, "probe", **json.loads(Path(sys.argv[2]).read_text()))
    Path(sys.argv[3]).write_text(json.dumps(probe.found))


if __name__ == "__main__":
    main()
