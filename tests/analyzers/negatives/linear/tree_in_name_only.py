# mypy: ignore-errors
"""Called a tree walk throughout, and yet a loop over consecutive positions on the host."""

import torch


def walk_draft_tree(tree_tokens, target_tree, tree_out):
    for node in range(tree_tokens.shape[0]):
        tree_out[node] = target_tree[node]
        if node + 1 == tree_tokens.shape[0] or tree_tokens[node + 1] != target_tree[node]:
            break


def verify(tokens, target):
    out = torch.full_like(target, -1)
    for tree in range(target.shape[0]):
        walk_draft_tree(tokens[tree], target[tree], out[tree])
    return out
