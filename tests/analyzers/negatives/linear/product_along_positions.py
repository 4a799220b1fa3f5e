# mypy: ignore-errors
"""A cumulative product of the matches at consecutive positions, one chain per row."""

import torch


def verify(tokens, target):
    branch_ok = (tokens[:, 1:] == target[:, :-1]).int()
    accepted_depth = torch.cumprod(branch_ok, dim=1).sum(dim=1, keepdim=True)
    positions = torch.arange(target.shape[1], device=target.device)
    return torch.where(positions <= accepted_depth, target, -1)
