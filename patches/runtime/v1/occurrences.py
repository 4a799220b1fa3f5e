"""Where the end of a text occurred before: an index that grows with the text, bounded in both.

For each of a few lengths, every place of the text is chained to the one before it whose last
tokens have the same hash. A look-up walks `LOOKED` places of each chain at most, whatever the
text's length, and compares their tokens; a chain costs 4 bytes per token, and its heads as much
again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int32]
Places = npt.NDArray[np.int32]

# Places of a chain that are looked at; the latest come first.
LOOKED = 64
# Lengths that are indexed: all that a user asks for, or this many of them, evenly spread.
CHAINS = 4
FEWEST = 256
# Odd, so that multiplying by its powers loses no bit of a token.
FACTOR = np.uint64(0x9E3779B97F4A7C15)


def lengths(shortest: int, longest: int) -> list[int]:
    """The lengths of matches that are indexed, the longest first."""
    many = min(CHAINS, longest - shortest + 1)
    return sorted({round(x) for x in np.linspace(shortest, longest, many)}, reverse=True)


class Chain:
    """The places of one text by the hash of the `length` tokens before them."""

    def __init__(self, length: int) -> None:
        """Know no place yet."""
        self.length = length
        self.known = length
        self.before: Places = np.empty(0, dtype=np.int32)
        self.head: Places = np.empty(0, dtype=np.int32)
        powers = [pow(int(FACTOR), power, 1 << 64) for power in range(1, length + 1)]
        self._powers = np.array(powers, dtype=np.uint64)

    def extend(self, text: Tokens) -> None:
        """Know the places of a text that has grown, except its end, after which nothing comes."""
        if len(text) > len(self.head):
            self._grow(len(text))
        if len(text) <= self.known:
            return
        places = np.arange(self.known, len(text), dtype=np.int32)
        slots = self._slots(text[self.known - self.length : -1])
        self.known = len(text)
        order = np.argsort(slots, kind="stable")
        slots, places = slots[order], places[order]
        # Of places in one slot, the first follows what the slot held, each other the one before.
        first = np.ones(len(slots), dtype=bool)
        first[1:] = slots[1:] != slots[:-1]
        previous = np.empty_like(places)
        previous[1:] = places[:-1]
        previous[first] = self.head[slots[first]]
        self.before[places] = previous
        last = np.append(first[1:], True)
        self.head[slots[last]] = places[last]

    def places(self, text: Tokens) -> Iterator[int]:
        """The latest places whose `length` tokens before them are the text's last ones."""
        end = text[len(text) - self.length :]
        found: list[int] = []
        place = int(self.head[self._slots(end)[0]])
        while place >= 0 and len(found) < LOOKED:
            found.append(place)
            place = int(self.before[place])
        rows = np.array(found, dtype=np.int64)[:, None] + np.arange(-self.length, 0)
        # Another's tokens may have the same slot.
        return (found[row] for row in np.flatnonzero((text[rows] == end).all(1)))

    def _grow(self, needed: int) -> None:
        size = max(FEWEST, 1 << needed.bit_length())
        self.before = np.empty(size, dtype=np.int32)
        self.head = np.full(size, -1, dtype=np.int32)
        self.known = self.length

    def _slots(self, tokens: Tokens) -> npt.NDArray[np.int64]:
        windows = np.lib.stride_tricks.sliding_window_view(tokens.astype(np.uint64), self.length)
        hashes = (windows * self._powers).sum(1, dtype=np.uint64)
        bits = np.uint64(64 - (len(self.head).bit_length() - 1))
        slots: npt.NDArray[np.int64] = ((hashes * FACTOR) >> bits).astype(np.int64)
        return slots


class Occurrences:
    """The chains of one text."""

    def __init__(self, shortest: int, longest: int) -> None:
        """Know no text yet; matches are of `shortest` to `longest` tokens."""
        self.chains = [Chain(length) for length in lengths(shortest, longest)]
        self.known = 0

    def of_end(self, text: Tokens) -> Iterator[int]:
        """Places after which the text went on once, those with the longest match first."""
        if len(text) < self.known:
            self.chains = [Chain(chain.length) for chain in self.chains]
        self.known = len(text)
        for chain in self.chains:
            if len(text) > chain.length:
                chain.extend(text)
                yield from chain.places(text)
