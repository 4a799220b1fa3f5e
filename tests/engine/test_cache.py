"""Caches of every layout: places are learned, keys are found, accepted rows move exactly."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ddtree.patches.runtime.cache import Caches, Packed, Strided, look_at

BLOCK, HEADS, DIM, BLOCKS = 32, 2, 16, 5
Put = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def columns(rows: torch.Tensor, dim: torch.Tensor) -> torch.Tensor:
    """Keys column by column, as the CPU backend's vector form keeps them."""
    return dim * BLOCK + rows


def tiles(rows: torch.Tensor, dim: torch.Tensor) -> torch.Tensor:
    """Pairs of elements of 16 slots side by side, as a matrix unit takes them."""
    return rows // 16 * 16 * DIM + dim // 2 * 32 + rows % 16 * 2 + dim % 2


def pairs(rows: torch.Tensor, dim: torch.Tensor) -> torch.Tensor:
    """Two slots side by side in tiles of 4 dimensions, as a matrix unit takes values."""
    return rows // 2 * 8 + rows % 2 + dim // 4 * BLOCK * 4 + dim % 4 * 2


def swizzled(rows: torch.Tensor, dim: torch.Tensor) -> torch.Tensor:
    """Places that no digits of slot and dimension give."""
    return dim * BLOCK + (rows ^ dim % 4)


class Impl:
    """Writes keys by `place` and values plainly, the values after the keys of a block."""

    def __init__(self, place: Put) -> None:
        self.place = place

    def do_kv_cache_update(
        self,
        layer: object,
        key: torch.Tensor,
        value: torch.Tensor,
        cache: torch.Tensor,
        slots: torch.Tensor,
    ) -> None:
        """Element by element."""
        flat = cache.view(len(cache), HEADS, -1)
        dim = torch.arange(DIM)
        for row, slot in enumerate(slots.tolist()):
            at = torch.tensor(slot % BLOCK)
            flat[slot // BLOCK][:, self.place(at, dim)] = key[row]
            flat[slot // BLOCK][:, BLOCK * DIM + at * DIM + dim] = value[row]


def filled(place: Put, dtype: torch.dtype) -> tuple[SimpleNamespace, torch.Tensor, torch.Tensor]:
    """A layer whose slots hold random rows, and these: [slots, heads, dim]."""
    torch.manual_seed(3)
    rows = torch.randn(2, BLOCKS * BLOCK, HEADS, DIM).to(dtype)
    cache = torch.zeros(BLOCKS, HEADS, BLOCK, 2 * DIM, dtype=dtype)
    backend = SimpleNamespace(get_name=lambda: "CPU_ATTN")
    layer = SimpleNamespace(kv_cache=cache, impl=Impl(place), attn_backend=backend)
    layer.impl.do_kv_cache_update(layer, rows[0], rows[1], cache, torch.arange(BLOCKS * BLOCK))
    return layer, rows[0], rows[1]


def read(layer: SimpleNamespace) -> tuple[torch.Tensor, torch.Tensor]:
    """All rows of a layer's cache by slot, as attention would read them."""
    table = torch.tensor([[3, 1, 4], [0, 2, 0]], dtype=torch.int32)
    keys, values, dense = look_at(layer).of_blocks(table, [3 * BLOCK, BLOCK + 1])
    found = []
    for cache in (keys, values):
        blocks = [cache[dense[0, 0]], cache[dense[0, 1]], cache[dense[0, 2]]]
        blocks += [cache[dense[1, 0]], cache[dense[1, 1]]]
        order = [3, 1, 4, 0, 2]
        found.append(torch.cat([blocks[order.index(block)] for block in range(BLOCKS)]))
    return found[0], found[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("place", "kind"),
    [(columns, Strided), (tiles, Packed), (pairs, Packed), (swizzled, Packed)],
)
def test_places_are_learned(place: Put, kind: type, dtype: torch.dtype) -> None:
    """What attention reads is bit for bit what was written."""
    layer, keys, values = filled(place, dtype)
    assert isinstance(look_at(layer), kind)
    found = read(layer)
    assert torch.equal(found[0], keys)
    assert torch.equal(found[1], values)


class Gathered(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """The most indices that one selection was given."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "index" in str(func):
            self.most = max([self.most, *(one.numel() for one in args[2:3])])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("place", [tiles, pairs])
def test_packed_rows_are_read_by_strides(place: Put, dtype: torch.dtype) -> None:
    """One element after another is ten times as slow, which is all of a step in bfloat16."""
    layer, _, _ = filled(place, dtype)
    cache, table = look_at(layer), torch.tensor([[3, 1, 4]], dtype=torch.int32)
    with Gathered() as gathered:  # type: ignore[no-untyped-call]
        cache.of_blocks(table, [3 * BLOCK])
    assert gathered.most <= table.numel()


@pytest.mark.parametrize("place", [columns, tiles, pairs, swizzled])
def test_accepted_rows_move(place: Put) -> None:
    """Two requests in one step: slots right after the root take the accepted rows."""
    layer, keys, values = filled(place, torch.bfloat16)
    slots = torch.tensor([40, 41, 42, 43, 7, 100, 101, 102])
    perm = torch.tensor([[0, 2, 3, 1], [0, 3, 1, 2]], dtype=torch.int32)
    accepted = torch.tensor([2, 1], dtype=torch.int32)
    start = torch.tensor([0, 4], dtype=torch.int32)
    Caches().commit({"layer": layer}, slots, perm, accepted, start, 3)
    for rows in (keys, values):
        rows[[41, 42, 100]] = rows[[42, 43, 102]]
    found = read(layer)
    assert torch.equal(found[0], keys)
    assert torch.equal(found[1], values)


def test_a_cache_that_is_allocated_anew_is_looked_at_again() -> None:
    """The address tells."""
    layer, _, _ = filled(columns, torch.float32)
    caches = Caches()
    first = caches.of("layer", layer)
    assert caches.of("layer", layer) is first
    layer.kv_cache = layer.kv_cache.clone()
    assert caches.of("layer", layer) is not first


def test_an_update_that_writes_elsewhere_is_refused() -> None:
    """A slot without a place of its own would be read as another's."""
    layer, _, _ = filled(lambda rows, dim: rows * 0 + dim, torch.float32)
    with pytest.raises(ValueError, match="places per block"):
        look_at(layer)
