"""Candidate continuations merged by comparing all pairs of prefixes, without a host sync."""

from __future__ import annotations

import torch
from torch.nn.functional import pad


def trie(
    tokens: torch.Tensor, lengths: torch.Tensor, nodes: int, budgets: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """See `trie`; returns tokens, parents, depth and count."""
    requests, _, steps = tokens.shape
    owner = first_with_prefix(tokens, lengths)
    step = torch.arange(steps, device=tokens.device)
    number = torch.arange(tokens.shape[1], device=tokens.device)[:, None]
    real = step < lengths[..., None]
    new = real & (owner == number)
    # Row of every new node in order of appearance; then each node has its owner's row.
    row = new.flatten(1).cumsum(1)
    row = row.gather(1, (owner * steps + step).flatten(1)).view_as(tokens)
    limit = torch.full_like(row[:, 0, 0], nodes)
    if budgets is not None:
        limit = torch.minimum(limit, budgets.clamp(min=0))
    within = new & (row <= limit[:, None, None])
    # Row 0 takes what has no place, and is cut off.
    place = row.where(within, 0).flatten(1)
    parent = pad(row[..., :-1], (1, 0))

    def table(values: torch.Tensor, padding: int) -> torch.Tensor:
        out = torch.full((requests, nodes + 1), padding, dtype=torch.int32, device=tokens.device)
        source = values.expand_as(tokens).flatten(1).to(torch.int32)
        return out.scatter_(1, place, source)[:, 1:].contiguous()

    count = within.flatten(1).sum(1, dtype=torch.int32)
    return table(tokens, -1), table(parent, 0), table(step + 1, 0), count


def first_with_prefix(tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The first continuation that shares each prefix, [R, C, L] int64; 0 past the end."""
    steps = tokens.shape[2]
    real = torch.arange(steps, device=tokens.device) < lengths[..., None]
    equal = (tokens[:, :, None] == tokens[:, None]) & real[:, :, None] & real[:, None]
    shared = equal.to(torch.uint8).cummin(-1).values
    # Of several maxima `argmax` takes the first.
    return shared.argmax(2)
