# mypy: ignore-errors
"""A vectorised walk down a table of children, which is indexed by the current node of every row."""

import torch


def verify(child_table, tokens, target):
    rows, nodes, _ = child_table.shape
    each = torch.arange(rows, device=target.device)
    cur = torch.zeros_like(each)
    done = torch.zeros(rows, dtype=torch.bool, device=target.device)
    out = torch.full_like(target, -1)
    for step in range(nodes):
        want = target[each, cur]
        out[:, step] = torch.where(done, out[:, step], want)
        options = child_table[each, cur]
        same = tokens.gather(1, options.clamp(min=0)) == want[:, None]
        same &= options >= 0
        done = done | ~same.any(dim=1)
        pick = same.int().argmax(dim=1)
        cur = torch.where(done, cur, options[each, pick])
    return out
