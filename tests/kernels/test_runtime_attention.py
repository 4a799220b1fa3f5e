"""The attention hook on batches of prefill, decode and trees, by the project's own kernel.

It stands beside a backend's attention, which knows chains only: here that is exact attention of the
whole batch with every mask lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddtree.kernels.tree.attention import reference
from ddtree.patches.runtime import attention
from ddtree.patches.runtime.batch import Batch
from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import Counters
from ddtree.patches.runtime.engine import Engine
from ddtree.patches.runtime.kernels.tree.attention import tree_attention
from ddtree.patches.runtime.pending import Drafted
from ddtree.patches.runtime.prepare import begin

from . import trees
from .attention_batches import Problem, Request, Sizes, chain, problem, tree

BUDGET = 12
BATCHES = {
    "mixed": (
        chain(37, 0),
        tree(trees.random_tree(7, seed=1), 20),
        chain(1, 33),
        tree(trees.star(12), 0),
        chain(16, 70),
        tree(trees.comb(8), 40),
    ),
    "trees alone": (tree(trees.random_tree(12, seed=5), 18), tree(trees.comb(5), 31)),
    "decode first": (chain(1, 5), chain(1, 64), tree(trees.comb(9), 16)),
}


class Step:
    """A step of one batch, from the preparation of its inputs to the attention of one layer."""

    def __init__(self, requests: tuple[Request, ...], given: Problem, **settings: Any) -> None:
        device = given.exact.device
        self.given = given
        engine = Engine(Settings(BUDGET, **settings), 3, Counters(device), lambda _: None)
        names = [f"request {number}" for number in range(len(requests))]
        backend = SimpleNamespace(get_name=lambda: "TRITON_ATTN")
        impl = SimpleNamespace(scale=given.numbers["scale"])
        # Keys and values are views of one cache.
        cache = given.tensors["key_cache"]._base
        self.layer = SimpleNamespace(kv_cache=cache, attn_backend=backend, impl=impl)
        engine.layers = [{"layer": self.layer}]
        drafts = [0 if one.shape is None else one.shape.count for one in requests]
        scheduled = [one.rows for one in requests]
        ids = torch.zeros(sum(scheduled) + 2, dtype=torch.int32, device=device)
        self.record(engine, requests, names, ids)
        positions = torch.zeros(len(ids), dtype=torch.int64, device=device)
        self.step = begin(engine, Batch(names, drafts, scheduled, ids, positions))

    def record(
        self, engine: Engine, requests: tuple[Request, ...], names: list[str], ids: torch.Tensor
    ) -> None:
        """Put the trees' tokens where they are scheduled, and let them wait for the step."""
        shapes = [one.shape or trees.empty() for one in requests]
        batch = trees.batch(shapes, BUDGET, ids.device)
        row = 0
        for line, one in enumerate(requests):
            if one.shape is not None:
                ids[row + 1 : row + one.rows] = batch.tokens[line, : one.shape.count]
            row += one.rows
        drafted = Drafted(batch.tokens, batch.parents, batch.count)
        lines = zip(names, requests, strict=True)
        engine.pending.record(drafted, [name if one.shape else None for name, one in lines])

    def attended(self) -> torch.Tensor:
        """The layer's output; rows that nobody wrote stay as they were poisoned."""
        query = self.given.tensors["query"]
        output = torch.full_like(query, float("nan"))
        attention.forward(self.stock(), query, query, query, output, "layer")
        return output

    def stock(self) -> Callable[..., None]:
        """A backend's attention, whose module has what vLLM's attention module has."""
        tensors = self.given.tensors
        metadata = SimpleNamespace(
            seq_lens=tensors["seq_lens"],
            block_table=tensors["block_table"],
            max_seq_len=self.given.numbers["max_seq_len"],
        )
        causal = self.given.ignoring_trees().tensors
        exact = reference.attend(*causal.values(), scale=self.given.numbers["scale"])
        names: dict[str, Any] = {
            "_resolve_layer_name": lambda name: name,
            "get_attention_context": lambda name: (metadata, self.layer, None, None),
            "exact": exact,
        }
        code = "def stock(query, key, value, output, name):\n    output.copy_(exact)\n"
        # What a function sees as its module is where it was defined.
        exec(code, names)
        stock: Callable[..., None] = names["stock"]
        return stock


@pytest.fixture
def by_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime picks the form by the device; here it is always the Triton kernel."""
    kernel = functools.partial(tree_attention, form="kernel", num_splits=2)
    monkeypatch.setattr(attention, "tree_attention", kernel)


def error(step: Step, rows: int) -> float:
    """Largest deviation from the exact result in the rows of requests."""
    found = step.attended()[:rows].double()
    return float((found - step.given.exact[:rows]).abs().max())


@pytest.mark.usefixtures("by_kernel")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BATCHES)
def test_every_row_sees_what_it_may(name: str, dtype: torch.dtype, device: torch.device) -> None:
    """Prefill and decode rows keep the backend's result, trees get the kernel's."""
    requests = BATCHES[name]
    sizes = Sizes(dtype=dtype, heads=4, kv_heads=2)
    given = problem(requests, sizes, device)
    step = Step(requests, given)
    assert error(step, sum(one.rows for one in requests)) <= given.allowed
    assert step.step is not None
    assert step.step.layers_masked == {"layer"}


@pytest.mark.usefixtures("by_kernel")
def test_without_the_mask_it_would_be_noticed(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend alone is far from what the trees' rows have to be."""
    requests = BATCHES["mixed"]
    given = problem(requests, Sizes(heads=4, kv_heads=2), device)
    monkeypatch.setenv("DDTREE_CONTROLS", "1")
    step = Step(requests, given, without=("mask",))
    assert error(step, sum(one.rows for one in requests)) > 1000 * given.allowed
