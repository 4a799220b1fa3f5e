"""Counts of what the trees did, kept on the device and read on request."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import torch

from .config import LOGGER
from .transfer import Arriving

LOG_EVERY_SECONDS = 10.0

ALL: list[Counters] = []

SUMS = ("requests", "rows", "accepted", "accepted_chain", "branches")


class Counters:
    """Sums over all steps of one engine."""

    def __init__(self, device: torch.device) -> None:
        """Start at zero; `device` is where the walk's results are."""
        self.steps = 0
        self.fallbacks: Counter[str] = Counter()
        self._sums = torch.zeros(len(SUMS), dtype=torch.int64, device=device)
        self._logged_at = time.monotonic()
        self._logged_steps = 0
        self._arriving: Arriving | None = None
        ALL.append(self)

    def add(
        self,
        parents: torch.Tensor,
        count: torch.Tensor,
        perm: torch.Tensor,
        accepted: torch.Tensor,
        walked: torch.Tensor,
    ) -> None:
        """Count one step, without waiting for the device.

        Args:
            parents: [R, N] int32.
            count: [R] int32.
            perm: [R, N + 1] int32, from the walk.
            accepted: [R] int32.
            walked: [R] bool, the requests that count.
        """
        self.steps += 1
        place = torch.arange(perm.shape[1], device=perm.device)
        taken = (place <= accepted[:, None]) & walked[:, None]
        first = _is_first_child(parents, count).gather(1, perm.long())
        on_chain = (first & taken).to(torch.int64).cumprod(1)
        drafted = (count > 0) & walked
        sums = (
            drafted.sum(),
            torch.where(walked, count, 0).sum(),
            torch.where(walked, accepted, 0).sum(),
            on_chain[:, 1:].sum(),
            (taken & ~first).sum(),
        )
        self._sums += torch.stack([value.to(torch.int64) for value in sums])

    def read(self) -> dict[str, Any]:
        """All counts; waits for the device.

        `requests` are verifications of one request, `accepted` and `accepted_chain` accepted
        nodes of the tree and of its first-branch chain; an acceptance length counts the bonus
        token too. `branches` are accepted nodes that are not their parent's first child.
        """
        return self._named(self._sums.tolist())

    def log_now_and_then(self) -> None:
        """Log the counts if there is news and the last time was a while ago.

        The numbers are copied in one step and logged in a later one, so that no step waits.
        """
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY_SECONDS and self.steps != self._logged_steps:
            self._logged_at, self._logged_steps = now, self.steps
            self._arriving = Arriving(self._sums)
        if self._arriving is None or not self._arriving.there:
            return
        counts = self._named(self._arriving.values)
        self._arriving = None
        LOGGER.info(
            "ddtree: %d steps, %d verifications, %d nodes; acceptance length %.2f "
            "(first branch alone %.2f), %d accepted off the first branch; chains by reason: %s. "
            "To compare with a chain, read the acceptance length here, or vLLM's mean acceptance "
            "length; vLLM's draft acceptance rate takes every node of a tree for a draft",
            counts["steps"],
            counts["requests"],
            counts["rows"],
            counts["acceptance_length"],
            counts["acceptance_length_chain"],
            counts["branches"],
            counts["fallbacks"] or "none",
        )

    def _named(self, sums: list[int]) -> dict[str, Any]:
        found: dict[str, Any] = dict(zip(SUMS, sums, strict=True))
        requests = max(found["requests"], 1)
        return {
            "steps": self.steps,
            **found,
            "acceptance_length": 1 + found["accepted"] / requests,
            "acceptance_length_chain": 1 + found["accepted_chain"] / requests,
            "fallbacks": dict(self.fallbacks),
        }


def read(worker: object = None) -> list[dict[str, Any]]:
    """The counts of every engine in this process.

    Args:
        worker: not used; lets `LLM.collective_rpc` call this function in its workers.
    """
    del worker
    return [counters.read() for counters in ALL]


def _is_first_child(parents: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Whether each row is its parent's lowest child; the root counts as one. [R, N + 1] bool."""
    requests, nodes = parents.shape
    row = torch.arange(1, nodes + 1, device=parents.device).expand(requests, nodes)
    real = row <= count[:, None]
    above = torch.where(real, parents, 0).long()
    lowest = torch.full((requests, nodes + 1), nodes + 1, device=parents.device)
    lowest.scatter_reduce_(1, above, torch.where(real, row, nodes + 1), "amin")
    first = lowest.gather(1, above) == row
    return torch.cat([first.new_ones(requests, 1), first], dim=1)
