"""The V2 runner's chains: what pads them is neither heard of nor accepted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddtree.patches.runtime.active import ACTIVE
from ddtree.patches.runtime.config import Settings
from ddtree.patches.runtime.counters import Counters
from ddtree.patches.runtime.engine import ATTRIBUTE, Engine
from ddtree.patches.runtime.v2 import chains
from ddtree.patches.runtime.v2 import runner as hooks

BUDGET, DEPTH = 8, 3
BATCH = SimpleNamespace(req_ids=["a", "b"])


def engine() -> Engine:
    """An engine with a tree `a` and a chain `b`."""
    made = Engine(Settings(BUDGET), DEPTH, Counters(torch.device("cpu")), lambda _: None)
    made._reasons = {"a": (None, None), "b": (None, "structured output")}
    return made


def test_the_scheduler_does_not_hear_of_padding() -> None:
    """A grammar that allows the padding would follow it further than it can come back from."""
    lists = [[5] * BUDGET, [1, 2, 3] + [0] * (BUDGET - DEPTH)]
    drafted = SimpleNamespace(req_ids=["a", "b"], draft_token_ids=lists)
    handler = SimpleNamespace(get_draft_tokens=lambda: drafted)
    chains.shorten(engine(), handler)
    assert handler.get_draft_tokens() is drafted
    assert drafted.draft_token_ids == [[5] * BUDGET, [1, 2, 3]]
    # A step in which nothing is drafted.
    drafted.draft_token_ids = [[], []]
    assert handler.get_draft_tokens().draft_token_ids == [[], []]


@pytest.mark.parametrize("trees", [False, True])
def test_no_padding_is_accepted(trees: bool) -> None:
    """Whether or not the step has trees; a walk may go further than the drafter's depth."""
    made = engine()
    sampler = SimpleNamespace(**{ATTRIBUTE: made}, num_speculative_steps=BUDGET)
    sampled = torch.arange(2 * (BUDGET + 1)).view(2, -1)

    def stock(*_: Any) -> Any:
        return hooks.rejection_sample(lambda: (sampled, torch.tensor([6, 7], dtype=torch.int32)))

    assert made.step is None
    if trees:
        step = SimpleNamespace(is_walked=torch.tensor([True, False]), judged=0)
        ACTIVE.decided = step  # type: ignore[assignment]
        tokens = (torch.full((2, 6), 9), torch.tensor([6, 0]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hooks, "path_tokens", lambda _: tokens)
            found, count = hooks.sample(
                stock, sampler, torch.zeros(2, 4), SimpleNamespace(req_ids=["a", "b"])
            )
        assert count.tolist() == [6, DEPTH + 1]
        assert found[0, :6].tolist() == [9] * 6
        assert torch.equal(found[1], sampled[1])
    else:
        found, count = hooks.sample(
            stock, sampler, torch.zeros(2, 4), SimpleNamespace(req_ids=["a", "b"])
        )
        assert count.tolist() == [DEPTH + 1, DEPTH + 1]
        assert torch.equal(found, sampled)
    assert count.dtype == torch.int32
    assert ACTIVE.decided is None
    assert ACTIVE.depth is None
