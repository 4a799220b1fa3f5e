# mypy: ignore-errors
"""Parent pointers on the GPU: a while loop that searches a block of nodes for the next child."""

import torch
import triton
import triton.language as tl


@triton.jit
def _descend(out_ptr, up_ptr, tok_ptr, tgt_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    inside = offs < n
    up = tl.load(up_ptr + row * n + offs, mask=inside, other=-2)
    tok = tl.load(tok_ptr + row * n + offs, mask=inside, other=-2)
    here = 0
    depth = 0
    while here >= 0:
        want = tl.load(tgt_ptr + row * n + here)
        tl.store(out_ptr + row * n + depth, want)
        hit = (up == here) & (tok == want)
        here = tl.max(tl.where(hit, offs, -1), axis=0)
        depth += 1


def verify(parents, tokens, target):
    rows, n = parents.shape
    out = target.new_full((rows, n), -1)
    block = triton.next_power_of_2(n)
    _descend[(rows,)](out, parents.contiguous(), tokens.contiguous(), target, n, BLOCK=block)
    return torch.where(out >= 0, out, -1)
