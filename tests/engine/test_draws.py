"""The target's tokens, where no engine is needed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from ddtree.patches.runtime.v1.draws import targets


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("vocabulary", [1, 2, 33, 512, 12289])
def test_greedy_is_the_argmax_that_the_sampler_takes(dtype: torch.dtype, vocabulary: int) -> None:
    """Among equal logits the same one, or a chain would not be the stock chain."""
    random = torch.Generator().manual_seed(vocabulary)
    # Three values only: nearly every row has ties for the first place.
    logits = torch.randint(0, 3, (40, vocabulary), generator=random).to(dtype)
    logits[3] = -torch.inf
    logits[4, vocabulary // 2] = torch.inf
    logits[5, -1] = torch.nan
    found = targets(logits, [39], SimpleNamespace(all_greedy=True))
    assert torch.equal(found, logits.argmax(-1))
