# mypy: ignore-errors
"""A child map walked on the host: for each node, a dictionary from token to child."""

import torch


def _accepted_path(children, predicted):
    path = [0]
    while True:
        child = children[path[-1]].get(predicted[path[-1]])
        if child is None:
            return path
        path.append(child)


def verify(children, target):
    out = torch.full_like(target, -1)
    for row, predicted in enumerate(target.tolist()):
        path = _accepted_path(children[row], predicted)
        out[row, : len(path)] = target[row, path]
    return out
