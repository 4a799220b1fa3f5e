"""Where a run leaves greedy decoding, and how far its logits are from another run's.

Scores are raw logits, per token the best twenty. A unit in the last place (ulp) is the distance of
two neighbouring bfloat16 numbers of the best logit's size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .passes import Pass, Scores

# Bits of a bfloat16's fraction.
FRACTION = 7


@dataclass(frozen=True, slots=True)
class Parting:
    """A request's first token that is not the other run's: its place, and the other run's gap."""

    request: int
    place: int
    gap: float


def ulp(value: float) -> float:
    """The distance from a bfloat16 number to the next one of larger size; 0 for 0."""
    return 0.0 if value == 0 else 2.0 ** (math.floor(math.log2(abs(value))) - FRACTION)


def gap(place: Sequence[tuple[int, float]]) -> float:
    """How far the best logit is ahead of the second, in ulp of the best."""
    (_, best), (_, second) = place[:2]
    return (best - second) / ulp(best)


def partings(run: Pass, plain: Pass) -> Iterator[Parting]:
    """The first difference of every request that has one."""
    for request, (mine, theirs) in enumerate(zip(run.tokens, plain.tokens, strict=True)):
        place = common(mine, theirs)
        if place < len(theirs):
            yield Parting(request, place, gap(scores(plain, request)[place]))


def common(mine: Sequence[int], theirs: Sequence[int]) -> int:
    """Tokens until the first that differs."""
    pairs = enumerate(zip(mine, theirs, strict=True))
    return next((place for place, (one, other) in pairs if one != other), len(theirs))


def gaps(run: Pass) -> list[float]:
    """The gaps of all places of all requests."""
    return [gap(place) for request in range(len(run.tokens)) for place in scores(run, request)]


def shared(run: Pass, plain: Pass) -> Iterator[tuple[int, int]]:
    """Request and place wherever both runs have the same text behind them."""
    for request, (mine, theirs) in enumerate(zip(run.tokens, plain.tokens, strict=True)):
        for place in range(min(common(mine, theirs) + 1, len(theirs))):
            yield request, place


def distances(run: Pass, plain: Pass) -> list[float]:
    """Root mean square difference of the logits at every shared place, in ulp."""
    found = []
    for request, place in shared(run, plain):
        mine, theirs = scores(run, request)[place], dict(scores(plain, request)[place])
        off = [score - theirs[token] for token, score in mine if token in theirs]
        found.append(root_mean_square(off) / ulp(mine[0][1]))
    return found


def root_mean_square(values: Sequence[float]) -> float:
    """Of at least one value."""
    return math.sqrt(sum(value * value for value in values) / len(values))


def scores(run: Pass, request: int) -> Scores:
    """The scores of one request.

    Raises:
        ValueError: the run was not asked for scores.
    """
    found = run.scores[request]
    if found is None:
        raise ValueError("scores: expected a run with log-probabilities, found one without")
    return found
