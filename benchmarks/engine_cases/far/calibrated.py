"""A proposer whose candidates are right as often as it says: acceptance is a setting.

At every place of a text the true next token has a rank among the candidates, drawn once with the
probabilities that the proposer gives its ranks. So its probabilities are calibrated, every form of
verification meets the same luck at the same place, and drafting itself costs next to nothing.
"""

from __future__ import annotations

import heapq
import json
import random
from pathlib import Path
from typing import Any

# First tokens of a prompt that tell the requests apart.
MARK = 8


class Calibrated:
    """A `custom_class` proposer of vLLM.

    `calibrated.json` in the working directory gives `known`, whole sequences of prompt and greedy
    continuation; `depth`; `nodes`, the most nodes of a tree, or 0 for the chain of the candidates
    of rank 0; `ranks`, the probability of each rank, which sum to less than 1; `vocabulary`.
    """

    def __init__(self, config: Any) -> None:
        """Read what is known; `config` is vLLM's and not used."""
        del config
        given = json.loads(Path("calibrated.json").read_text())
        self.known = {tuple(tokens[:MARK]): tokens for tokens in given["known"]}
        self.vocabulary: int = given["vocabulary"]
        self.depth: int = given["depth"]
        self.ranks: list[float] = given["ranks"]
        self.shape = best_first(self.ranks, self.depth, given["nodes"])
        self.drawn: dict[int, list[int]] = {}
        self.draft_parents: list[list[int] | None] | None = None

    def load_model(self, *args: Any, **named: Any) -> None:
        """There is no model."""

    def propose(
        self, sampled: list[list[int]], lengths: Any, tokens: Any, **named: Any
    ) -> list[list[int]]:
        """The same tree over the candidates of every request; parents go to `draft_parents`."""
        del named
        drafts: list[list[int]] = []
        for line, new in enumerate(sampled):
            known = self.known.get(tuple(tokens[line, :MARK].tolist()), [])
            last = int(lengths[line]) - 1
            drafts.append(
                [self.candidates(known, last + depth)[rank] for _, depth, rank in self.shape]
                if new
                else []
            )
        above = [parent for parent, _, _ in self.shape]
        self.draft_parents = [above if nodes else [] for nodes in drafts]
        return drafts

    def candidates(self, known: list[int], place: int) -> list[int]:
        """Tokens by rank for one place of a text; the same whenever they are asked for."""
        seed = place * 1_000_003 + sum(known[:MARK])
        if seed not in self.drawn:
            luck = random.Random(seed)
            truth = known[place] if place < len(known) else -1
            others = luck.sample(range(self.vocabulary), len(self.ranks) + 1)
            line = [token for token in others if token != truth][: len(self.ranks)]
            missed = 1 - sum(self.ranks)
            (rank,) = luck.choices(range(len(line) + 1), [*self.ranks, missed])
            if rank < len(line) and truth >= 0:
                line[rank] = truth
            self.drawn[seed] = line
        return self.drawn[seed]


def best_first(ranks: list[float], depth: int, nodes: int) -> list[tuple[int, int, int]]:
    """Parent, depth and rank of the most probable prefixes; the chain of rank 0 for 0 nodes."""
    if nodes == 0:
        return [(place, place + 1, 0) for place in range(depth)]
    made: list[tuple[int, int, int]] = []
    heap = [(-ranks[0], 0, 1, 0)]
    while heap and len(made) < nodes:
        weight, parent, level, rank = heapq.heappop(heap)
        made.append((parent, level, rank))
        if rank + 1 < len(ranks):
            beside = weight / ranks[rank] * ranks[rank + 1]
            heapq.heappush(heap, (beside, parent, level, rank + 1))
        if level < depth:
            heapq.heappush(heap, (weight * ranks[0], len(made), level + 1, 0))
    return made
