# mypy: ignore-errors
"""Block verification: the longest prefix whose joint ratio beats a coin, still along one chain."""

import torch
import triton
import triton.language as tl


@triton.jit
def _prefix_kernel(out_ptr, token_ptr, p_ptr, q_ptr, coin_ptr, width, vocab):
    base = tl.program_id(0).to(tl.int64) * width
    joint = 1.0
    kept = 0
    for i in range(width):
        token = tl.load(token_ptr + base + i)
        p = tl.load(p_ptr + (base + i) * vocab + token)
        q = tl.load(q_ptr + (base + i) * vocab + token)
        joint = tl.minimum(joint * p / q, 1.0)
        if tl.load(coin_ptr + base + i) <= joint:
            kept = i + 1
    for i in range(kept):
        tl.store(out_ptr + base + i, tl.load(token_ptr + base + i))


def verify(draft_probs, coins, probs, tokens):
    out = torch.full_like(tokens, -1)
    rows, width, vocab = probs.shape
    _prefix_kernel[(rows,)](out, tokens, probs, draft_probs, coins, width, vocab)
    return out
