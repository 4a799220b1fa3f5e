"""Turn what a V2 speculator gives into trees, and remember them for the next step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..capture import Capture
from ..drafting import takes_tree, trees_of
from ..engine import Engine
from ..pending import Drafted
from ..transfer import to_device


def drafts_of(
    engine: Engine, chain: torch.Tensor, capture: Capture, requests: Sequence[str]
) -> torch.Tensor:
    """The tokens to verify in the place of the drafter's own: [R, budget].

    The runner schedules as many rows for every request. What pads a tree, or a chain in its place,
    is never walked; what pads the chain of a request that takes none is verified like any other
    draft, so it has to be a token of the vocabulary.

    Args:
        engine: the runner's state; takes the trees.
        chain: [R, D], the drafter's chains.
        capture: what was seen while it drafted.
        requests: names, in the batch's order.
    """
    takes = takes_tree(engine, requests)
    padded = torch.nn.functional.pad(chain, (0, engine.settings.budget - chain.shape[1]))
    tree = trees_of(engine, chain, capture, requests, takes)
    if tree is None:
        _as_trees(engine, padded, chain.shape[1], requests, takes)
        return padded
    nodes = tree.tokens.clamp(min=0).to(chain.dtype)
    if all(takes):
        return nodes
    return torch.where(to_device(takes, chain.device, torch.bool)[:, None], nodes, padded)


def _as_trees(
    engine: Engine, padded: torch.Tensor, depth: int, requests: Sequence[str], takes: Sequence[bool]
) -> None:
    """Remember chains as trees of one branch, so that their padding is not walked."""
    number, width = padded.shape
    above = torch.arange(width, dtype=torch.int32, device=padded.device).repeat(number, 1)
    count = torch.full((number,), depth, dtype=torch.int32, device=padded.device)
    lines = zip(requests, takes, strict=True)
    engine.pending.record(
        Drafted(padded.to(torch.int32), above, count),
        [request if taken else None for request, taken in lines],
    )
