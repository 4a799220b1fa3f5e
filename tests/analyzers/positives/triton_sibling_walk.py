# mypy: ignore-errors
"""First child and next sibling on the GPU: down on a match, sideways otherwise."""

import torch
import triton
import triton.language as tl


@triton.jit
def _walk_kernel(out_ptr, first_child_ptr, next_sibling_ptr, token_ptr, target_ptr, width):
    start = tl.program_id(0).to(tl.int64) * width
    want = tl.load(target_ptr + start)
    tl.store(out_ptr + start, want)
    count = 1
    candidate = tl.load(first_child_ptr + start)
    while candidate >= 0:
        if tl.load(token_ptr + start + candidate) == want:
            want = tl.load(target_ptr + start + candidate)
            tl.store(out_ptr + start + count, want)
            count += 1
            candidate = tl.load(first_child_ptr + start + candidate)
        else:
            candidate = tl.load(next_sibling_ptr + start + candidate)


def verify(first_child, next_sibling, tokens, target):
    out = torch.full_like(target, -1)
    grid = (target.shape[0],)
    _walk_kernel[grid](out, first_child, next_sibling, tokens, target, target.shape[1])
    return out
