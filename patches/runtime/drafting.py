"""Turn the candidates behind a drafter's chain into trees."""

from __future__ import annotations

from collections.abc import Container, Sequence

import torch

from .capture import Capture
from .engine import Engine
from .kernels.tree.build import build
from .kernels.tree.candidates import Candidates
from .kernels.tree.chain_siblings import chain_siblings
from .kernels.tree.layout import Tree
from .pending import Drafted

ENDED = "at the end of the context"
NO_LOGITS = "the drafter gave no logits"


def capture_for(engine: Engine) -> Capture:
    """What takes the candidates of one drafting round."""
    most = engine.settings.max_siblings or engine.settings.budget
    return Capture(most, engine.settings.temperature)


def takes_tree(engine: Engine, requests: Sequence[str], ended: Container[int] = ()) -> list[bool]:
    """Which requests are drafted trees; the others are counted by reason.

    Args:
        engine: the runner's state.
        requests: names, in the batch's order.
        ended: lines of requests that have no room for drafts.
    """
    reasons = [
        ENDED if line in ended else engine.reason(request) for line, request in enumerate(requests)
    ]
    for request, reason in zip(requests, reasons, strict=True):
        if reason is not None:
            engine.count(reason, [request])
    return [reason is None for reason in reasons]


def trees_of(
    engine: Engine,
    chain: torch.Tensor,
    capture: Capture,
    requests: Sequence[str],
    takes: Sequence[bool],
) -> Tree | None:
    """The tree of every request; None, and counted, if the candidates were not seen.

    Args:
        engine: the runner's state; remembers the trees of the requests that take one.
        chain: [R, D], the drafter's own tokens.
        capture: what was seen while it drafted.
        requests: names, in the batch's order.
        takes: whether each takes a tree.
    """
    found = capture.per_position(*chain.shape)
    if found is None:
        engine.count(NO_LOGITS, requests)
        return None
    tree = _tree(engine, chain, found, block=len(capture.calls) == 1)
    drafted = Drafted(tree.tokens, tree.parents, tree.count)
    lines = zip(requests, takes, strict=True)
    engine.pending.record(drafted, [request if taken else None for request, taken in lines])
    return tree


def _tree(engine: Engine, chain: torch.Tensor, found: Candidates, *, block: bool) -> Tree:
    settings = engine.settings
    if block and chain.shape[1] > 1 and settings.shape != "siblings":
        return build(
            found.ids,
            found.logp,
            settings.budget,
            spine_first=settings.shape == "spine_first",
            max_siblings=settings.max_siblings,
            ranked=True,
        )
    # The chain's token is the most probable one, so it is among the candidates.
    ids = chain.to(found.ids.dtype)
    logp = torch.where(found.ids == ids[..., None], found.logp, -torch.inf).amax(-1)
    return chain_siblings(ids.contiguous(), logp, found.ids, found.logp, settings.budget)
