"""Keep the candidates behind a drafter's tokens while it drafts."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from .kernels.tree.candidates import Candidates, candidates


@dataclass(slots=True)
class Capture:
    """The candidates of one drafting round, one entry per sampling call.

    Attributes:
        most: candidates kept per position.
        temperature: divides the logits.
        calls: candidates [rows, 1, K] of each call.
    """

    most: int
    temperature: float
    calls: list[Candidates] = field(default_factory=list)

    def take(self, logits: torch.Tensor) -> None:
        """Keep the best candidates of [rows, V] logits."""
        most = min(self.most, logits.shape[-1])
        warmth = None if self.temperature == 1 else self.temperature
        self.calls.append(candidates(logits[:, None], most, temperature=warmth))

    def per_position(self, requests: int, depth: int) -> Candidates | None:
        """The candidates as [R, D, K], whether the drafter sampled in one call or in D.

        None if the drafter sampled in another way.
        """
        if len(self.calls) == 1 and len(self.calls[0].ids) == requests * depth:
            return Candidates(*(part.view(requests, depth, -1) for part in self.calls[0]))
        if len(self.calls) == depth and all(len(call.ids) == requests for call in self.calls):
            parts = zip(*self.calls, strict=True)
            return Candidates(*(torch.cat(part, dim=1) for part in parts))
        return None
