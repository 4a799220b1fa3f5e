# mypy: ignore-errors
"""Pointer doubling: after k steps, a node knows the fate of its 2^k nearest ancestors."""

import torch


def surviving(parents, hit):
    jump = parents.clamp(min=0).long()
    for _ in range(parents.shape[1].bit_length()):
        hit = hit & torch.gather(hit, 1, jump)
        jump = torch.gather(jump, 1, jump)
    return hit


def verify(parents, depths, tokens, target):
    above = parents.clamp(min=0).long()
    hit = tokens == torch.gather(target, 1, above)
    hit[:, 0] = True
    alive = surviving(parents, hit)
    order = torch.where(alive, depths.long(), target.shape[1])
    out = torch.full((target.shape[0], target.shape[1] + 1), -1, dtype=target.dtype)
    out.scatter_(1, order, target)
    return out[:, :-1]
