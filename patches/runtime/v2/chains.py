"""A chain among trees: as long as the drafter's own, although its rows are as many as a tree's.

What pads it are tokens that nobody drafted. A grammar that allows them would follow them further
than it was told that it has to come back from, so the scheduler does not hear of them; and then no
grammar says what may follow them, so none of them is accepted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..engine import Engine


def shorten(engine: Engine, handler: Any) -> None:
    """Let a runner's `DraftTokensHandler` hand on chains without their padding."""
    handler.get_draft_tokens = functools.partial(_drafts, engine, handler.get_draft_tokens)


def _drafts(engine: Engine, function: Callable[[], Any]) -> Any:
    drafted = function()
    if drafted is not None:
        for request, tokens in zip(drafted.req_ids, drafted.draft_token_ids, strict=True):
            if engine.reason(request) is not None:
                del tokens[engine.depth :]
    return drafted


def limited(num_sampled: torch.Tensor, depth: int) -> torch.Tensor:
    """The numbers of tokens that a chain gives, at most its own and one more."""
    return num_sampled.clamp(max=depth + 1)
