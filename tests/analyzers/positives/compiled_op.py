# mypy: ignore-errors
"""A compiled op of the engine's own library, which is handed children and siblings."""

import torch


def verify(rows_of, first_child, next_sibling, tokens, target):
    batch, nodes = tokens.shape
    predicts = torch.full((batch * nodes,), -1, dtype=torch.int32, device=tokens.device)
    accept_index = torch.full((batch, nodes), -1, dtype=torch.int32, device=tokens.device)
    accept_count = torch.zeros(batch, dtype=torch.int32, device=tokens.device)
    torch.ops._C.verify_tree_greedy(
        predicts,
        accept_index,
        accept_count,
        tokens,
        rows_of,
        first_child,
        next_sibling,
        target,
    )
    taken = predicts[accept_index.clamp(min=0).long()]
    return torch.where(accept_index >= 0, taken, -1)
