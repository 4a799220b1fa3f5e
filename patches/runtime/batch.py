"""A step's batch as both model runners can describe it, once its inputs are prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Batch:
    """What is scheduled.

    Attributes:
        requests: names, in the batch's order.
        drafts: drafted rows of each request, on the host.
        scheduled: token rows of each request, drafts included, on the host.
        input_ids: [T or more] the runner's own buffer, which is written in place.
        positions: [T or more] the same, of positions.
    """

    requests: Sequence[str]
    drafts: list[int]
    scheduled: list[int]
    input_ids: torch.Tensor
    positions: torch.Tensor
