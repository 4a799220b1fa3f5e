# mypy: ignore-errors
"""A vectorised search for the first mismatch, named after trees."""

import torch


def verify(tokens, target):
    tree_match = tokens[:, 1:] == target[:, :-1]
    leaf = (tree_match == 0).max(1).indices
    leaf[tree_match.all(1)] = tree_match.shape[1]
    nodes = torch.arange(target.shape[1], device=target.device).unsqueeze(0)
    return torch.where(nodes <= leaf.unsqueeze(1), target, -1)
