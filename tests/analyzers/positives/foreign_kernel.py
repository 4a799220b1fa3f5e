# mypy: ignore-errors
"""A compiled kernel of another package, which samples among siblings."""

import torch
from sgl_kernel import tree_speculative_sampling_target_only


def verify(rows_of, first_child, next_sibling, coins, probs, tokens, target):
    batch, nodes = tokens.shape
    predicts = torch.full((batch * nodes,), -1, dtype=torch.int32, device=tokens.device)
    accept_index = torch.full((batch, nodes), -1, dtype=torch.int32, device=tokens.device)
    accept_count = torch.zeros(batch, dtype=torch.int32, device=tokens.device)
    tree_speculative_sampling_target_only(
        predicts=predicts,
        accept_index=accept_index,
        accept_token_num=accept_count,
        candidates=tokens,
        retrive_index=rows_of,
        retrive_next_token=first_child,
        retrive_next_sibling=next_sibling,
        uniform_samples=coins,
        uniform_samples_for_final_sampling=coins[:, 0],
        target_probs=probs,
        draft_probs=torch.zeros_like(probs),
        threshold_single=1.0,
        threshold_acc=1.0,
        deterministic=True,
    )
    return torch.where(accept_index >= 0, predicts[accept_index.clamp(min=0).long()], -1)
