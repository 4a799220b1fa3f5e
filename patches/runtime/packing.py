"""How a block's rows are packed, as digits of slot and dimension; read back by copies of strides.

A CPU backend for matrix tiles interleaves the elements of neighbouring slots or dimensions. Each
of the two numbers has digits (a slot in a tile, the tile in the block) and every digit a stride, so
that a block is read like a tensor of more dimensions. Reading it element by element takes ten and
more times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

# Elements that one of another type holds, by the bytes of an element and their number.
WIDER = {(2, 2): torch.int32, (2, 4): torch.int64, (4, 2): torch.int64}


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of a number: it runs from 0 to `size` - 1, `stride` elements apart."""

    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Form:
    """Where the elements of a block lie; `slots` and `dims` begin with the slowest digit."""

    first: int
    slots: tuple[Digit, ...]
    dims: tuple[Digit, ...]


def form_of(place: torch.Tensor) -> Form | None:
    """The form that puts element (slot, dimension) at `place` [block, dim]; None if none does."""
    first = int(place[0, 0])
    slots = _digits((place[:, 0] - first).tolist())
    dims = _digits((place[0] - first).tolist())
    form = Form(first, slots, dims)
    found = _places(form)
    whole = found.numel() == place.numel() and torch.equal(found.view(place.shape), place)
    return form if whole else None


def unpacked(blocks: torch.Tensor, form: Form) -> torch.Tensor:
    """The rows of packed blocks: [N, heads, elements], contiguous, as [N, block, heads, dim]."""
    dtype, together = blocks.dtype, _neighbours(blocks, form)
    dims = form.dims
    if together > 1:
        blocks, dims = blocks.view(WIDER[blocks.element_size(), together]), dims[:-1]
    number, heads, elements = blocks.shape
    parts = [
        Digit(number, heads * elements),
        *(Digit(digit.size, digit.stride // together) for digit in form.slots),
        Digit(heads, elements),
        *(Digit(digit.size, digit.stride // together) for digit in dims),
    ]
    view = blocks.as_strided(
        [digit.size for digit in parts],
        [digit.stride for digit in parts],
        form.first // together,
    )
    block = math.prod(digit.size for digit in form.slots)
    return view.contiguous().view(number, block, heads, -1).view(dtype)


def _neighbours(blocks: torch.Tensor, form: Form) -> int:
    """Elements of a row that lie side by side everywhere, so that they can be copied as one."""
    fastest = form.dims[-1]
    rest = [form.first, blocks.shape[2], *(digit.stride for digit in form.slots)]
    rest += [digit.stride for digit in form.dims[:-1]]
    fits = fastest.stride == 1 and not any(number % fastest.size for number in rest)
    return fastest.size if fits and (blocks.element_size(), fastest.size) in WIDER else 1


def _digits(distances: list[int]) -> tuple[Digit, ...]:
    """Digits, the slowest first, that give these distances from the first if any do."""
    found: list[Digit] = []
    step = 1
    while step < len(distances):
        stride, size = distances[step], 1
        while size * step < len(distances) and distances[size * step] == size * stride:
            size += 1
        found.append(Digit(size, stride))
        step *= size
    return tuple(reversed(found)) or (Digit(1, 1),)


def _places(form: Form) -> torch.Tensor:
    place = torch.tensor(form.first)
    for digit in (*form.slots, *form.dims):
        place = place[..., None] + torch.arange(digit.size) * digit.stride
    return place
