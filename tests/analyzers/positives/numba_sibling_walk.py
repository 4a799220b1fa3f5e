# mypy: ignore-errors
"""First child and next sibling on the host, compiled with numba."""

import numba
import numpy as np
import torch


@numba.njit(cache=False)
def _walk(out, down, right, tokens, target):
    for row in range(out.shape[0]):
        here = 0
        length = 0
        moved = True
        while moved:
            out[row, length] = target[row, here]
            length += 1
            moved = False
            child = down[row, here]
            while child != -1:
                if tokens[row, child] == target[row, here]:
                    here = child
                    moved = True
                    break
                child = right[row, child]


def verify(first_child, next_sibling, tokens, target):
    out = np.full(target.shape, -1, dtype=np.int64)
    _walk(out, first_child.numpy(), next_sibling.numpy(), tokens.numpy(), target.numpy())
    return torch.from_numpy(out)
