# mypy: ignore-errors
"""One pass on the host: a node lives if its parent does and its token is the target's there."""

import torch


def _living(parents, tokens, target):
    alive = [False] * len(parents)
    alive[0] = True
    for node in range(1, len(parents)):
        above = parents[node]
        if alive[above] and tokens[node] == target[above]:
            alive[node] = True
    return [node for node, lives in enumerate(alive) if lives]


def verify(parents, tokens, target):
    out = torch.full_like(target, -1)
    for row in range(target.shape[0]):
        path = _living(parents[row].tolist(), tokens[row].tolist(), target[row].tolist())
        out[row, : len(path)] = target[row, path]
    return out
