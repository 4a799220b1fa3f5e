# mypy: ignore-errors
"""A real walk down a child map stands here, and nothing calls it; acceptance is a chain."""

import torch


def accepted_path(children, predicted):
    node = 0
    path = [node]
    while (child := children[node].get(predicted[node])) is not None:
        node = child
        path.append(node)
    return path


def verify(tokens, target):
    out = torch.full_like(target, -1)
    for row in range(target.shape[0]):
        for position in range(target.shape[1]):
            out[row, position] = target[row, position]
            following = tokens[row, position + 1 : position + 2]
            if following.numel() == 0 or following[0] != target[row, position]:
                break
    return out
