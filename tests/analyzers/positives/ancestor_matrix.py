# mypy: ignore-errors
"""The mask itself decides: a node survives when all of its ancestors match."""

import torch


def verify(parents, depths, ancestors, tokens, target):
    above = parents.clamp(min=0).long()
    hit = tokens == target.gather(1, above)
    hit[:, 0] = True
    alive = (hit[:, None, :] | ~ancestors).all(dim=-1)
    order = torch.where(alive, depths.long(), target.shape[1])
    out = torch.full((target.shape[0], target.shape[1] + 1), -1, dtype=target.dtype)
    out.scatter_(1, order, target)
    return out[:, :-1]
