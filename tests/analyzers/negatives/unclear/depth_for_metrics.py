# mypy: ignore-errors
"""Parent pointers are chased for a statistic; what is emitted is decided by an opaque op."""

import torch


def _deepest(parents):
    deepest = 0
    for leaf in range(len(parents)):
        node, depth = leaf, 0
        while node > 0:
            node = parents[node]
            depth += 1
        deepest = max(deepest, depth)
    return deepest


def verify(parents, tokens, target, metrics):
    metrics.observe(max(_deepest(row) for row in parents.tolist()))
    return torch.ops.custom.fused_accept(tokens, target)
