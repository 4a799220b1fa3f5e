# mypy: ignore-errors
"""No walk at all: every node inherits its parent's fate, and the deepest survivor wins."""

import torch


def verify(parents, depths, tokens, target):
    nodes = parents.shape[1]
    above = parents.clamp(min=0).long()
    ok = tokens == target.gather(1, above)
    ok[:, 0] = True
    for _ in range(nodes):
        ok = ok & ok.gather(1, above)
    deepest = torch.where(ok, depths, -1).argmax(dim=1, keepdim=True)
    out = torch.full_like(target, -1)
    for _ in range(nodes):
        out.scatter_(1, depths.gather(1, deepest).long(), target.gather(1, deepest))
        deepest = above.gather(1, deepest)
    return out
