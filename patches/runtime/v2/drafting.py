"""Turn what a V2 speculator gives into trees, and remember them for the next step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..capture import Capture
from ..drafting import takes_tree, trees_of
from ..engine import Engine
from ..transfer import to_device


def drafts_of(
    engine: Engine, chain: torch.Tensor, capture: Capture, requests: Sequence[str]
) -> torch.Tensor:
    """The tokens to verify in the place of the drafter's own: [R, budget].

    The runner schedules as many rows for every request. What pads a tree is never walked; what
    pads a chain is verified like any other draft, so it has to be a token of the vocabulary.

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
        return padded
    nodes = tree.tokens.clamp(min=0).to(chain.dtype)
    if all(takes):
        return nodes
    return torch.where(to_device(takes, chain.device, torch.bool)[:, None], nodes, padded)
