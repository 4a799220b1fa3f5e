# mypy: ignore-errors
"""Rejection sampling among siblings: a lost coin moves sideways, a won one descends."""

import torch


def _step(row, node, down, right, tokens, residual, coins):
    sibling = int(down[row, node])
    while sibling >= 0:
        token = int(tokens[row, sibling])
        if float(coins[row, sibling]) < float(residual[token]):
            return sibling, residual
        residual[token] = 0
        residual = residual / residual.sum().clamp(min=1e-20)
        sibling = int(right[row, sibling])
    return -1, residual


def verify(first_child, next_sibling, coins, probs, tokens, target):
    out = torch.full_like(target, -1)
    for row in range(target.shape[0]):
        node = length = 0
        while True:
            at_node = probs[row, node].clone()
            child, rest = _step(row, node, first_child, next_sibling, tokens, at_node, coins)
            if child < 0:
                out[row, length] = int(rest.argmax())
                break
            out[row, length] = int(tokens[row, child])
            length += 1
            node = child
    return out
