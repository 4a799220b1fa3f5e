"""Where a text's end occurred before: found as a plain search finds it, at a bounded cost."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from ddtree.patches.runtime.v1.ngram import MOST, continuations
from ddtree.patches.runtime.v1.occurrences import CHAINS, LOOKED, Chain, Occurrences, lengths

Tokens = npt.NDArray[np.int32]


def tokens(text: list[int]) -> Tokens:
    return np.array(text, dtype=np.int32)


def searched(text: list[int], sizes: tuple[int, ...], depth: int) -> list[list[int]]:
    """What followed earlier occurrences of the end, the longest matches and the latest first."""
    found: list[list[int]] = []
    for size in sizes:
        for end in range(len(text) - 1, size - 1, -1):
            here = text[end : end + depth]
            if size < len(text) and text[end - size : end] == text[-size:] and here not in found:
                found.append(here)
    return found[:MOST]


@pytest.mark.parametrize("vocabulary", [1, 4, 50])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 40, 200, 700])
def test_continuations_against_a_plain_search(length: int, vocabulary: int) -> None:
    """At once, and as the text grows by one token or by many."""
    source = random.Random(5)
    # Of one token's places in a longer text, more are there than are looked at.
    length = min(length, 60 * vocabulary)
    text = [source.randrange(vocabulary) for _ in range(length)]
    want = searched(text, (3, 2, 1), 5)
    at_once = Occurrences(1, 3)
    assert continuations(at_once.of_end(tokens(text)), tokens(text), 5) == want
    growing, known = Occurrences(1, 3), 0
    while known < length:
        known = min(length, known + source.choice((1, 1, 2, 9, 130)))
        found = continuations(growing.of_end(tokens(text[:known])), tokens(text[:known]), 5)
        assert found == searched(text[:known], (3, 2, 1), 5)


def test_a_text_that_became_another_gives_nothing_wrong() -> None:
    """A name comes again: with a longer text, a shorter one, one of the same length."""
    source = random.Random(1)
    made = Occurrences(1, 2)
    for length in (50, 80, 80, 30):
        text = [source.randrange(6) for _ in range(length)]
        for place in made.of_end(tokens(text)):
            assert text[place - 1] == text[-1]
        assert len(list(made.of_end(tokens(text)))) > 0


@pytest.mark.parametrize(
    ("shortest", "longest", "want"),
    [(1, 3, [3, 2, 1]), (2, 5, [5, 4, 3, 2]), (5, 5, [5]), (1, 100, [100, 67, 34, 1])],
)
def test_as_many_lengths_as_are_affordable(shortest: int, longest: int, want: list[int]) -> None:
    """A wide range is covered by few, both ends among them."""
    assert lengths(shortest, longest) == want
    assert len(want) <= CHAINS


class Counted(Chain):
    """Counts the tokens that are hashed."""

    hashed = 0

    def _slots(self, given: Tokens) -> npt.NDArray[np.int64]:
        self.hashed += len(given)
        return super()._slots(given)


@pytest.mark.parametrize("vocabulary", [1, 50_000])
def test_a_step_costs_the_same_after_a_long_text(vocabulary: int) -> None:
    """Repeated tokens have a place everywhere, and only so many are looked at."""
    source = np.random.default_rng(0)
    text = source.integers(0, vocabulary, 40_000).astype(np.int32)
    chain = Counted(3)
    chain.extend(text[:32_000])
    assert sum(part.nbytes for part in (chain.before, chain.head)) <= 16 * 32_000
    for length in range(32_000, 32_100):
        chain.hashed = 0
        chain.extend(text[:length])
        assert len(list(chain.places(text[:length]))) <= LOOKED
        # The new token's place, and the end that is looked up.
        assert chain.hashed <= 2 * 3
