# mypy: ignore-errors
"""A compiled kernel of another package, which samples along a chain."""

import torch
from flashinfer.sampling import chain_speculative_sampling


def verify(draft_probs, coins, tokens, target):
    accepted = torch.zeros_like(tokens[:, 0])
    emitted = torch.zeros_like(tokens[:, 0])
    out, _, _ = chain_speculative_sampling(draft_probs, tokens, target, accepted, emitted, coins)
    return out
