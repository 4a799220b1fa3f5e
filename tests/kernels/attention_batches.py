"""Batches for the attention tests: a paged cache that is NaN wherever no row may look."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ddtree.kernels.tree.ancestors import ancestors
from ddtree.kernels.tree.attention import reference, tree_attention

from . import trees
from .no_sync import no_host_sync
from .trees import Shape

# Error allowed, as a share of the largest value: twice the rounding of the dtype (once for the
# weights, once for the result); in float32 the sums over keys and head dominate instead.
BOUND = {torch.float32: 2**-17, torch.float16: 2**-10, torch.bfloat16: 2**-7}
DTYPES = tuple(BOUND)


@dataclass(frozen=True, slots=True)
class Request:
    """A tree's root and nodes, or without a shape a chain of `rows` rows, after its context."""

    context: int
    rows: int
    shape: Shape | None = None


def tree(shape: Shape, context: int) -> Request:
    return Request(context, shape.count + 1, shape)


def chain(rows: int, context: int) -> Request:
    return Request(context, rows)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What all requests of a batch share."""

    dtype: torch.dtype = torch.float32
    dim: int = 32
    heads: int = 2
    kv_heads: int = 1
    block: int = 16
    layout: str = "paired"


@dataclass(frozen=True, slots=True)
class Problem:
    """Arguments of `tree_attention`, the exact result, and the error that is allowed."""

    tensors: dict[str, torch.Tensor]
    numbers: dict[str, Any]
    lengths: dict[str, list[int]]
    exact: torch.Tensor = field(repr=False)
    allowed: float

    def changed(self, **tensors: torch.Tensor) -> Problem:
        """Other tensors, but the exact result of these."""
        return replace(self, tensors={**self.tensors, **tensors})

    def ignoring_trees(self) -> Problem:
        """Every mask lost."""
        return self.changed(is_chain=torch.ones_like(self.tensors["is_chain"]))


def _split(blocks: int, sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    cache = _poison(2, blocks, sizes.block, sizes.kv_heads, sizes.dim, dtype=sizes.dtype)
    return cache[0], cache[1]


def _paired(blocks: int, sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    cache = _poison(blocks, 2, sizes.block, sizes.kv_heads, sizes.dim, dtype=sizes.dtype)
    return cache[:, 0], cache[:, 1]


def _packed(blocks: int, sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    cache = _poison(blocks, sizes.kv_heads, sizes.block, 2 * sizes.dim, dtype=sizes.dtype)
    both = cache.transpose(1, 2)
    return both[..., : sizes.dim], both[..., sizes.dim :]


def _column(blocks: int, sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    """No engine's layout known to us, but a view like any other: slots are contiguous."""
    cache = _poison(blocks, sizes.kv_heads, 2 * sizes.dim, sizes.block, dtype=sizes.dtype)
    both = cache.permute(0, 3, 1, 2)
    return both[..., : sizes.dim], both[..., sizes.dim :]


def _poison(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.full(shape, float("nan"), dtype=dtype)


LAYOUTS: dict[str, Callable[[int, Sizes], tuple[torch.Tensor, torch.Tensor]]] = {
    "split": _split,
    "paired": _paired,
    "packed": _packed,
    "column": _column,
}


# Every form of a test is compared with one exact result: a test that changes a tensor copies it.
@functools.lru_cache(maxsize=8)
def problem(
    requests: tuple[Request, ...],
    sizes: Sizes,
    device: torch.device,
    *,
    seed: int = 0,
    tail: int = 2,
) -> Problem:
    """A batch with random contents; `tail` query rows after it belong to no request."""
    random = torch.Generator().manual_seed(seed)
    rows = [r.rows for r in requests]
    seq_lens = [r.context + r.rows for r in requests]
    key, value, table = _filled_cache(seq_lens, sizes, random)
    # Rows that lie in a wider tensor, as one projection gives query, key and value together.
    wide = _random(random, sum(rows) + tail, sizes.heads + 2, sizes.dim, dtype=sizes.dtype)
    visible, is_chain = _masks(requests, random)
    start = torch.tensor([0, *rows]).cumsum(0)
    tensors = {
        "query": wide[:, : sizes.heads],
        "key_cache": key,
        "value_cache": value,
        "block_table": table,
        "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
        "query_start": start.to(torch.int32),
        "visible": visible,
        "is_chain": is_chain,
    }
    scale = sizes.dim**-0.5
    tensors = {name: _moved(x, device) for name, x in tensors.items()}
    exact = reference.attend(*tensors.values(), scale=scale)
    largest = value.float().nan_to_num(0).abs().max().item()
    numbers = {"scale": scale, "max_query_len": max(rows), "max_seq_len": max(seq_lens)}
    lengths = {"query_lens": rows, "seq_lens_host": seq_lens}
    return Problem(tensors, numbers, lengths, exact, BOUND[sizes.dtype] * largest)


def _moved(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """On the device with the same strides, which a plain copy of a view would lose."""
    if x.device == device:
        return x
    base = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).to(device)
    return base.as_strided(x.shape, x.stride(), x.storage_offset())


def _random(random: torch.Generator, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, generator=random).to(dtype)


def _filled_cache(
    seq_lens: list[int], sizes: Sizes, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scattered blocks with values in the sequences' positions only; the table ends in -1."""
    needed = [-(-length // sizes.block) for length in seq_lens]
    blocks = torch.randperm(sum(needed) + 2, generator=random)
    key, value = LAYOUTS[sizes.layout](len(blocks), sizes)
    table = torch.full((len(seq_lens), max(needed) + 1), -1, dtype=torch.int32)
    for request, length in enumerate(seq_lens):
        mine, blocks = blocks[: needed[request]], blocks[needed[request] :]
        table[request, : len(mine)] = mine
        position = torch.arange(length)
        where = (mine[position // sizes.block], position % sizes.block)
        for cache in (key, value):
            cache[where] = _random(random, length, sizes.kv_heads, sizes.dim, dtype=sizes.dtype)
    return key, value, table


def _masks(
    requests: Sequence[Request], random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Visibility words of the trees, noise in those of the chains, and which is which."""
    shapes = [r.shape or trees.empty() for r in requests]
    layout = trees.batch(shapes, max(shape.count for shape in shapes))
    visible = ancestors(layout.parents, layout.count, form="reference").visible
    is_chain = torch.tensor([r.shape is None for r in requests])
    noise = torch.randint(-(2**62), 2**62, visible.shape, generator=random)
    return torch.where(is_chain[:, None, None], noise, visible), is_chain


def run(given: Problem, form: str, **options: Any) -> torch.Tensor:
    """One form's result in a poisoned output; a vectorised form may not wait for the host."""
    query = given.tensors["query"]
    out = torch.full(query.shape, float("nan"), dtype=query.dtype, device=query.device)
    if form == "each":
        options |= given.lengths
    arguments = {**given.tensors, **given.numbers, **options, "out": out}
    if form == "kernel":
        return tree_attention(**arguments, form="kernel")
    with no_host_sync():
        return tree_attention(**arguments, form="vectorised")


def error(given: Problem, form: str, **options: Any) -> float:
    """Largest deviation from the exact result; NaN where one side has it."""
    return (run(given, form, **options).double() - given.exact).abs().max().item()


def check(given: Problem, form: str, **options: Any) -> None:
    """The form keeps the bound; a NaN fails, since it compares as false."""
    assert error(given, form, **options) <= given.allowed
