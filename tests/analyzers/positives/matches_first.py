# mypy: ignore-errors
"""All nodes are compared with the target at once; the walk on the host only asks what matched."""

import torch


def _follow(down, right, fits):
    path, child = [0], down[0]
    while child >= 0:
        if fits[child]:
            path.append(child)
            child = down[child]
        else:
            child = right[child]
    return path


def verify(parents, first_child, next_sibling, tokens, target):
    hits = tokens == target.gather(1, parents.clamp(min=0))
    out = torch.full_like(target, -1)
    for row in range(target.shape[0]):
        down, right = first_child[row].tolist(), next_sibling[row].tolist()
        path = _follow(down, right, hits[row].tolist())
        out[row, : len(path)] = target[row, path]
    return out
