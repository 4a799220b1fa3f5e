# mypy: ignore-errors
"""First child and next sibling on the GPU: a loop over levels, within it one over siblings."""

import torch
import triton
import triton.language as tl


@triton.jit
def _verify_kernel(
    predicts_ptr,  # [rows, nodes]
    tokens_ptr,  # [rows, nodes]
    down_ptr,  # [rows, nodes]
    right_ptr,  # [rows, nodes]
    target_ptr,  # [rows, nodes]
    nodes,
):
    base = tl.program_id(0).to(tl.int64) * nodes
    last = 0
    emitted = 1
    tl.store(predicts_ptr + base, tl.load(target_ptr + base))
    going = True
    for _level in range(1, nodes):
        if going:
            wanted = tl.load(target_ptr + base + last)
            cursor = tl.load(down_ptr + base + last).to(tl.int32)
            going = False
            while cursor >= 0:
                if tl.load(tokens_ptr + base + cursor) == wanted:
                    bonus = tl.load(target_ptr + base + cursor)
                    tl.store(predicts_ptr + base + emitted, bonus)
                    emitted += 1
                    last = cursor
                    going = True
                    cursor = -1
                else:
                    cursor = tl.load(right_ptr + base + cursor).to(tl.int32)


def verify(first_child, next_sibling, tokens, target):
    rows, nodes = target.shape
    predicts = torch.full_like(target, -1)
    _verify_kernel[(rows,)](predicts, tokens, first_child, next_sibling, target, nodes)
    return predicts
