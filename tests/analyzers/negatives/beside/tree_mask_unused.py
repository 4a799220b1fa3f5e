# mypy: ignore-errors
"""An attention call with a mask for trees, which its one caller leaves out."""

import torch


def attend(query, key, value, tree_mask=None):
    scores = query @ key.transpose(-1, -2)
    if tree_mask is not None:
        scores = scores.masked_fill(~tree_mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value


def hook(runner, scheduler_output):
    return attend(scheduler_output.query, scheduler_output.key, scheduler_output.value, None)
