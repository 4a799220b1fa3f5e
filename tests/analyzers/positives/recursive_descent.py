# mypy: ignore-errors
"""Recursion instead of a loop: the walk calls itself on the child that holds the target's token."""

import torch


def _below(node, children, tokens, predicted):
    for child in children[node]:
        if tokens[child] == predicted[node]:
            return [child, *_below(child, children, tokens, predicted)]
    return []


def verify(child_lists, tokens, target):
    out = torch.full_like(target, -1)
    for row, children in enumerate(child_lists):
        path = [0, *_below(0, children, tokens[row].tolist(), target[row].tolist())]
        out[row, : len(path)] = target[row, path]
    return out
