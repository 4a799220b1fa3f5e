# mypy: ignore-errors
"""A cursor called node is carried through a while loop, but it only ever moves on by one."""

import torch


def verify(tokens, target):
    out = torch.full_like(target, -1)
    for row in range(target.shape[0]):
        node = 0
        out[row, node] = target[row, node]
        while node + 1 < target.shape[1] and tokens[row, node + 1] == target[row, node]:
            child = node + 1
            out[row, child] = target[row, child]
            node = child
    return out
