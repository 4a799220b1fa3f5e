# mypy: ignore-errors
"""A whole tree verifier that no call reaches; only types are taken from this module."""

import torch


class Accepted:
    length = 0


def accept_tree(parents, tokens, target):
    current = torch.zeros_like(parents[:, :1])
    for _ in range(parents.shape[1]):
        wanted = target.gather(1, current)
        match = (parents == current) & (tokens == wanted)
        current = torch.where(match.any(1, keepdim=True), match.int().argmax(1, True), current)
    return current


def hook(runner, scheduler_output):
    return Accepted()
