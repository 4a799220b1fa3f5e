# mypy: ignore-errors
"""Objects walked on the host: every node holds its children by token."""

from dataclasses import dataclass, field

import torch


@dataclass
class Node:
    row: int
    children: dict = field(default_factory=dict)


class Walker:
    def __init__(self, target):
        self.target = target

    def run(self, root):
        emitted = []
        node = root
        while node is not None:
            token = self.target[node.row]
            emitted.append(token)
            node = node.children.get(token)
        return emitted


def verify(roots, target):
    out = torch.full_like(target, -1)
    for index, root in enumerate(roots):
        emitted = Walker(target[index].tolist()).run(root)
        out[index, : len(emitted)] = torch.tensor(emitted)
    return out
