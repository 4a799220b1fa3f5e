"""Reach the keys and values of a layer's paged cache by slot, whatever the backend's layout.

GPU backends keep a slot's key in one piece. The CPU backend packs keys (and, for matrix tiles,
values) inside a block in a way that its own operator decides, so the places are learned: known
values are written through the layer's own update and looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from . import update
from .kernels.tree.commit import CommitPlan, commit
from .kernels.tree.commit.plan import LAYOUTS, fits
from .kernels.tree.commit.vectorised import moves
from .packing import Form, form_of, unpacked

# Digits of a place's number that every element type represents exactly (bfloat16: up to 256).
BASE = 128


@dataclass(frozen=True, slots=True)
class Strided:
    """A cache that ordinary strides describe; both views are [blocks, block, heads, dim]."""

    keys: torch.Tensor
    values: torch.Tensor

    def of_blocks(
        self, table: torch.Tensor, lengths: list[int] | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Keys, values and the block table that belongs to them; nothing is copied."""
        del lengths
        return self.keys, self.values, table


@dataclass(frozen=True, slots=True)
class Half:
    """The keys or the values of a packed cache.

    Attributes:
        memory: [blocks, heads, elements], the cache's own; a block may hold the other half too.
        place: [block, dim] int64, where the element of a slot's row lies in its block.
        form: the same as strides, where it has any.
    """

    memory: torch.Tensor
    place: torch.Tensor
    form: Form | None

    def rows(self, used: torch.Tensor) -> torch.Tensor:
        """Unpacked copies of the blocks `used` [N]: [N, block, heads, dim]."""
        blocks = self.memory.index_select(0, used)
        if self.form is not None:
            return unpacked(blocks, self.form)
        rows = blocks.index_select(2, self.place.flatten())
        return rows.view(*blocks.shape[:2], *self.place.shape).transpose(1, 2)

    def move(self, source: torch.Tensor, to: torch.Tensor) -> None:
        """Copy the rows of the slots `source` [M] to the slots `to`, reading first."""
        block = self.place.shape[0]
        head = torch.arange(self.memory.shape[1], device=source.device)[None, :, None]
        places = self.place[source % block][:, None]
        rows = self.memory[(source // block)[:, None, None], head, places]
        self.memory[(to // block)[:, None, None], head, self.place[to % block][:, None]] = rows

    def view(self) -> torch.Tensor | None:
        """The memory as [blocks, block, heads, dim], or None if ordinary strides cannot say it."""
        form = self.form
        if form is None or len(form.slots) > 1 or len(form.dims) > 1:
            return None
        memory, (slot,), (dim,) = self.memory, form.slots, form.dims
        shape = (len(memory), slot.size, memory.shape[1], dim.size)
        strides = (memory.stride(0), slot.stride, memory.stride(1), dim.stride)
        return memory.as_strided(shape, strides, memory.storage_offset() + form.first)


@dataclass(frozen=True, slots=True)
class Packed:
    """A cache whose blocks are packed."""

    keys: Half
    values: Half

    def of_blocks(
        self, table: torch.Tensor, lengths: list[int] | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Unpacked copies of the blocks in use, and a table that counts in the copies.

        Args:
            table: [R, max_blocks] int32.
            lengths: positions of each request; all of the table is in use when None.
        """
        block = self.keys.place.shape[0]
        if lengths is None:
            lengths = [table.shape[1] * block] * len(table)
        counts = [-(-length // block) for length in lengths]
        used = torch.cat([line[:count] for line, count in zip(table, counts, strict=True)])
        dense = torch.zeros(len(counts), max(counts), dtype=torch.int32, device=table.device)
        first = 0
        for line, count in zip(dense, counts, strict=True):
            line[:count] = torch.arange(first, first + count, device=table.device)
            first += count
        return self.keys.rows(used), self.values.rows(used), dense

    def move(self, source: torch.Tensor, to: torch.Tensor) -> None:
        """Copy the keys and values of the slots `source` [M] to the slots `to`, reading first."""
        self.keys.move(source, to)
        self.values.move(source, to)


Cache = Strided | Packed


class Caches:
    """The caches of the target's layers, looked at once."""

    def __init__(self) -> None:
        """Know nothing yet; caches are allocated after the model is loaded."""
        self._known: dict[str, tuple[int, Cache]] = {}
        self._plans: dict[tuple[str, ...], CommitPlan] = {}

    def of(self, name: str, layer: Any) -> Cache:
        """The cache of the layer of this name; looked at again when it was allocated anew."""
        address = layer.kv_cache.data_ptr()
        known = self._known.get(name)
        if known is None or known[0] != address:
            known = (address, look_at(layer))
            self._known[name] = known
            self._plans.clear()
        return known[1]

    def commit(
        self,
        layers: dict[str, Any],
        slots: torch.Tensor,
        perm: torch.Tensor,
        accepted: torch.Tensor,
        row_start: torch.Tensor,
        longest: int,
    ) -> None:
        """Move the accepted rows of a step in every layer of one KV cache group.

        Args:
            layers: the group's layers by name.
            slots: [T] int64, the slot of every row of the step.
            perm: [R, N + 1] int32, from the walk.
            accepted: [R] int32.
            row_start: [R] int32, the root's row of each request.
            longest: no request accepts more nodes.
        """
        caches = [self.of(name, layer) for name, layer in layers.items()]
        key = tuple(layers)
        if key not in self._plans:
            strided = [cache for cache in caches if isinstance(cache, Strided)]
            views = [view for cache in strided for view in (cache.keys, cache.values)]
            self._plans[key] = CommitPlan.of_views(views)
        commit(self._plans[key], slots, perm, accepted, row_start=row_start, longest=longest)
        packed = {
            cache.keys.memory.data_ptr(): cache for cache in caches if isinstance(cache, Packed)
        }
        if packed:
            source, to = moves(slots, perm, accepted, row_start, longest)
            for cache in packed.values():
                cache.move(source, to)


def look_at(layer: Any) -> Cache:
    """How the keys and values of an attention layer lie in its cache.

    Raises:
        ValueError: the cache has a form that is not known.
    """
    cache: torch.Tensor = layer.kv_cache
    if layer.attn_backend.get_name() == "CPU_ATTN":
        return _learn(layer, cache)
    for shape, split in LAYOUTS.values():
        if fits(cache, shape):
            views = split(cache)
            keys, values = views if len(views) == 2 else views[0].chunk(2, dim=-1)
            return Strided(keys, values)
    raise ValueError(f"KV cache: expected a known layout, found shape {list(cache.shape)}")


def _learn(layer: Any, cache: torch.Tensor) -> Cache:
    halves = []
    for number, memory in enumerate(_flat(cache)):
        place = _places(layer, cache, number)
        halves.append(Half(memory, place, form_of(place)))
    keys, values = halves
    views = keys.view(), values.view()
    if views[0] is not None and views[1] is not None:
        return Strided(views[0], views[1])
    return Packed(keys, values)


def _flat(cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The memory in which keys and values lie, [blocks, heads, elements]; it may be the same."""
    if cache.dim() == 5:
        keys, values = cache.view(*cache.shape[:3], -1)
        return keys, values
    both = cache.view(*cache.shape[:2], -1)
    return both, both


def _places(layer: Any, cache: torch.Tensor, half: int) -> torch.Tensor:
    """Where a block's keys (half 0) or values (half 1) lie: [block, dim] int64."""
    _, heads, block, dim = update.halves(cache)[half].shape
    number = torch.arange(1, block * dim + 1).view(block, 1, dim)
    found = torch.zeros(_flat(cache)[half].shape[2], dtype=torch.int64)
    weight = 1
    while weight <= block * dim:
        # The second block, so that a place is told from memory that was never written.
        trial = _two_blocks(cache)
        digit = (number // weight % BASE).to(cache.dtype).expand(block, heads, dim).contiguous()
        rows = [torch.zeros_like(digit), torch.zeros_like(digit)]
        rows[half] = digit
        slots = torch.arange(block, 2 * block)
        update.write(layer, rows[0], rows[1], trial, slots)
        found += _flat(trial)[half][1, 0].to(torch.int64) * weight
        weight *= BASE
    place = torch.full((block * dim,), -1)
    written = found.nonzero()[:, 0]
    place[found[written] - 1] = written
    if len(written) != block * dim or bool((place < 0).any()):
        raise ValueError(f"KV cache: expected {block * dim} places per block, found {len(written)}")
    return place.view(block, dim)


def _two_blocks(cache: torch.Tensor) -> torch.Tensor:
    shape = list(cache.shape)
    # Where the halves come first, the blocks come second.
    shape[cache.dim() == 5] = 2
    return cache.new_zeros(shape)
