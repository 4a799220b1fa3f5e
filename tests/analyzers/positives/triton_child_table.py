# mypy: ignore-errors
"""A table of children on the GPU: all children of the current node are compared at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def _table_kernel(out_ptr, table_ptr, tokens_ptr, target_ptr, nodes, fan, FAN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, FAN)
    at = tl.full([], 0, tl.int64)
    step = 0
    while at >= 0:
        sampled = tl.load(target_ptr + row * nodes + at)
        tl.store(out_ptr + row * nodes + step, sampled)
        below = tl.load(table_ptr + (row * nodes + at) * fan + lanes, mask=lanes < fan, other=-1)
        token = tl.load(tokens_ptr + row * nodes + below, mask=below >= 0, other=-1)
        at = tl.max(tl.where((below >= 0) & (token == sampled), below, -1), axis=0)
        step += 1


def verify(child_table, tokens, target):
    rows, nodes, fan = child_table.shape
    out = torch.full_like(target, -1)
    width = triton.next_power_of_2(fan)
    _table_kernel[(rows,)](out, child_table, tokens, target, nodes, fan, FAN=width)
    return out
