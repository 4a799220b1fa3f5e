"""The trees that were drafted and wait for their verification, by request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from .transfer import to_device


@dataclass(frozen=True, slots=True)
class Drafted:
    """Trees of one drafting round: `tokens` and `parents` [R, N] int32, `count` [R] int32."""

    tokens: torch.Tensor
    parents: torch.Tensor
    count: torch.Tensor


@dataclass(slots=True)
class Pending:
    """Where each request's tree is; a request that waits a step keeps its own."""

    rounds: dict[str, tuple[Drafted, int]] = field(default_factory=dict)

    def record(self, drafted: Drafted, requests: Sequence[str | None]) -> None:
        """Keep the trees of a round; a request that is None has none."""
        for line, request in enumerate(requests):
            if request is not None:
                self.rounds[request] = (drafted, line)

    def take(self, requests: Sequence[str]) -> tuple[list[int], Drafted | None]:
        """Take the trees of a batch's requests.

        Returns:
            The positions in `requests` that have a tree, and the trees of these in that order.
        """
        found = [
            (position, self.rounds.pop(request))
            for position, request in enumerate(requests)
            if request in self.rounds
        ]
        if not found:
            return [], None
        positions = [position for position, _ in found]
        first = found[0][1][0]
        if all(drafted is first for _, (drafted, _) in found):
            lines = to_device([line for _, (_, line) in found], first.count.device)
            return positions, Drafted(
                first.tokens.index_select(0, lines),
                first.parents.index_select(0, lines),
                first.count.index_select(0, lines),
            )
        return positions, Drafted(
            torch.stack([drafted.tokens[line] for _, (drafted, line) in found]),
            torch.stack([drafted.parents[line] for _, (drafted, line) in found]),
            torch.stack([drafted.count[line] for _, (drafted, line) in found]),
        )
