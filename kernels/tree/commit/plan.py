"""Describe a set of paged caches once, so that a step's commit needs no work on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

# Contents are moved as integers, the widest that fit, so that every element type is copied bit by
# bit and in few pieces.
WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def halves_first(cache: torch.Tensor) -> list[torch.Tensor]:
    """Views of a (2, blocks, block, heads, dim) cache."""
    return [cache[0], cache[1]]


def halves_second(cache: torch.Tensor) -> list[torch.Tensor]:
    """Views of a (blocks, 2, block, heads, dim) cache."""
    return [cache[:, 0], cache[:, 1]]


def heads_first(cache: torch.Tensor) -> list[torch.Tensor]:
    """View of a (blocks, heads, block, 2 * dim) cache."""
    return [cache.transpose(1, 2)]


LAYOUTS: dict[str, tuple[tuple[int | None, ...], Callable[[torch.Tensor], list[torch.Tensor]]]] = {
    "halves_first": ((2, None, None, None, None), halves_first),
    "halves_second": ((None, 2, None, None, None), halves_second),
    "heads_first": ((None, None, None, None), heads_first),
}


def fits(cache: torch.Tensor, shape: tuple[int | None, ...]) -> bool:
    """Whether a cache has a layout's shape, in which None stands for any extent."""
    return cache.dim() == len(shape) and all(
        want in (None, have) for want, have in zip(shape, cache.shape, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where the integers of a slot lie, counted in integers from a view's first one.

    Attributes:
        block_size: slots per block.
        block_stride: from a block to the next.
        slot_stride: from a slot to the next in its block.
        outer: how many runs a slot consists of (heads, or 1 where they are adjacent).
        outer_stride: from a run to the next.
        inner: integers per run.
        inner_stride: from an integer of a run to the next.
        word: the integer type.
        device: where the cache lives.
    """

    block_size: int
    block_stride: int
    slot_stride: int
    outer: int
    outer_stride: int
    inner: int
    inner_stride: int
    word: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class Group:
    """Views of one geometry: one launch.

    Attributes:
        geometry: what the views share.
        views: [blocks, block, outer, inner] views of the caches as integers.
        pointers: [views] int64, the address of each view's first element.
        aligned: whether all addresses are multiples of 16 bytes.
    """

    geometry: Geometry
    views: tuple[torch.Tensor, ...]
    pointers: torch.Tensor
    aligned: bool


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The caches that `commit` moves rows in, grouped by geometry; made once per engine.

    The plan keeps the caches alive. Make it again when they are allocated anew.
    """

    groups: tuple[Group, ...]

    @classmethod
    def of_views(cls, views: Iterable[torch.Tensor]) -> CommitPlan:
        """A plan of slot-addressed views.

        Args:
            views: each [blocks, block, ...], with zero, one or two axes after the slot, any
                strides and any element of 1, 2, 4 or 8 bytes; slot `s` is `view[s // block,
                s % block]`. Layers may differ in everything. A view that occurs twice, as that
                of layers which share a cache, is moved once.

        Raises:
            ValueError: a view has another number of axes, an empty axis or another element size.
        """
        grouped: dict[Geometry, dict[int, torch.Tensor]] = {}
        for number, view in enumerate(views):
            words = as_words(f"views[{number}]", view)
            grouped.setdefault(_geometry(words), {})[words.data_ptr()] = words
        return cls(tuple(_group(key, list(same.values())) for key, same in grouped.items()))

    @classmethod
    def of_caches(cls, caches: Sequence[torch.Tensor], layout: str) -> CommitPlan:
        """A plan of whole caches, one per layer.

        Args:
            caches: all of one layout.
            layout: "halves_first" (2, blocks, block, heads, dim), "halves_second" (blocks, 2,
                block, heads, dim) or "heads_first" (blocks, heads, block, 2 * dim).

        Raises:
            ValueError: the layout is none of these, or a cache does not have it.
        """
        if layout not in LAYOUTS:
            raise ValueError(f"layout: expected one of {', '.join(LAYOUTS)}, found {layout!r}")
        shape, split = LAYOUTS[layout]
        for number, cache in enumerate(caches):
            if not fits(cache, shape):
                extents = ", ".join("any" if extent is None else str(extent) for extent in shape)
                raise ValueError(
                    f"caches[{number}]: expected shape [{extents}], found {list(cache.shape)}"
                )
        return cls.of_views(view for cache in caches for view in split(cache))


def as_words(name: str, view: torch.Tensor) -> torch.Tensor:
    """The view as [blocks, block, outer, inner] integers; adjacent runs become one.

    Raises:
        ValueError: it has another number of axes, an empty axis or another element size.
    """
    if not 2 <= view.dim() <= 4 or 0 in view.shape:
        raise ValueError(
            f"{name}: expected 2 to 4 axes, none of them empty, found {list(view.shape)}"
        )
    if view.element_size() not in WORDS:
        raise ValueError(f"{name}: expected elements of 1, 2, 4 or 8 bytes, found {view.dtype}")
    words = view.view(WORDS[view.element_size()])
    while words.dim() < 4:
        words = words.unsqueeze(2)
    outer, inner = words.shape[2:]
    outer_stride, inner_stride = words.stride()[2:]
    if outer_stride == inner * inner_stride:
        shape = (*words.shape[:2], 1, outer * inner)
        words = words.as_strided(shape, (*words.stride()[:2], outer_stride, inner_stride))
    return _widened(words)


def _widened(words: torch.Tensor) -> torch.Tensor:
    """The same bytes as the widest integers that run, strides and address are multiples of."""
    size = words.element_size()
    if words.stride(3) != 1:
        return words
    extents = (*words.stride()[:3], words.shape[3], words.storage_offset())
    for wide in sorted(WORDS, reverse=True):
        fits = all(extent * size % wide == 0 for extent in extents)
        if wide > size and fits and words.data_ptr() % wide == 0:
            return words.view(WORDS[wide])
    return words


def _geometry(words: torch.Tensor) -> Geometry:
    block_stride, slot_stride, outer_stride, inner_stride = words.stride()
    return Geometry(
        block_size=words.shape[1],
        block_stride=block_stride,
        slot_stride=slot_stride,
        outer=words.shape[2],
        outer_stride=outer_stride,
        inner=words.shape[3],
        inner_stride=inner_stride,
        word=words.dtype,
        device=words.device,
    )


def _group(geometry: Geometry, views: list[torch.Tensor]) -> Group:
    addresses = [view.data_ptr() for view in views]
    pointers = torch.tensor(addresses, dtype=torch.int64, device=geometry.device)
    aligned = all(address % 16 == 0 for address in addresses)
    return Group(geometry, tuple(views), pointers, aligned)
