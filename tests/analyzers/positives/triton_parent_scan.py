# mypy: ignore-errors
"""Parent pointers on the GPU: one pass over the nodes, parents before children."""

import torch
import triton
import triton.language as tl


@triton.jit
def _accept_kernel(
    out_ptr,  # [rows, nodes]
    parents_ptr,  # [rows, nodes]
    tokens_ptr,  # [rows, nodes]
    target_ptr,  # [rows, nodes]
    nodes,
):
    base = tl.program_id(0).to(tl.int64) * nodes
    current = tl.load(parents_ptr + base) * 0
    wanted = tl.load(target_ptr + base)
    tl.store(out_ptr + base, wanted)
    length = 1
    for node in range(1, nodes):
        parent = tl.load(parents_ptr + base + node)
        token = tl.load(tokens_ptr + base + node)
        if (parent == current) & (token == wanted):
            current = node
            wanted = tl.load(target_ptr + base + node)
            tl.store(out_ptr + base + length, wanted)
            length += 1


def verify(parents, tokens, target):
    out = torch.full_like(target, -1)
    _accept_kernel[(parents.shape[0],)](out, parents, tokens, target, parents.shape[1])
    return out
