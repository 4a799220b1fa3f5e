# mypy: ignore-errors
"""Block verification: the longest prefix whose joint ratio beats a coin, still along one chain."""

import torch
import triton
import triton.language as tl


@triton.jit
def _prefix_kernel(out_ptr, ratio_ptr, coin_ptr, target_ptr, width):
    base = tl.program_id(0).to(tl.int64) * width
    joint = 1.0
    kept = 0
    for i in range(width):
        joint = tl.minimum(joint * tl.load(ratio_ptr + base + i), 1.0)
        if tl.load(coin_ptr + base + i) <= joint:
            kept = i + 1
    for i in range(kept):
        tl.store(out_ptr + base + i, tl.load(target_ptr + base + i))


def verify(ratios, coins, target):
    out = torch.full_like(target, -1)
    _prefix_kernel[(target.shape[0],)](out, ratios, coins, target, target.shape[1])
    return out
