"""Ancestor sets without host synchronisation, by pointer doubling over the parents."""

from __future__ import annotations

import torch


def ancestors(
    parents: torch.Tensor, count: torch.Tensor, words: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Visibility words, depth and chain flag of every request; see the launcher for shapes."""
    requests, nodes = parents.shape
    rows = torch.arange(nodes + 1, device=parents.device)
    real = rows <= count[:, None]
    # The root and padding rows are their own ancestor, which ends a climb there.
    above = torch.cat([parents.new_zeros(requests, 1), parents], dim=1).long()
    anchor = torch.where(real, above, rows)
    # Rows of the whole batch in one list, so that a step is three plain lookups.
    first = torch.arange(requests, device=parents.device)[:, None] * (nodes + 1)
    anchor = (anchor + first).reshape(-1)
    depth = (real & (rows > 0)).to(torch.int32).reshape(-1)
    visible = own_bits(nodes + 1, words, parents.device).repeat(requests, 1)
    for _ in range(nodes.bit_length()):
        # Before step k, a row has counted its 2^k nearest generations, itself included.
        visible = visible | visible.index_select(0, anchor)
        depth = depth + depth.index_select(0, anchor)
        anchor = anchor.index_select(0, anchor)
    chain = (parents == rows[:nodes]) | ~real[:, 1:]
    shape = (requests, nodes + 1)
    return visible.view(*shape, words), depth.view(shape), chain.all(1)


def own_bits(rows: int, words: int, device: torch.device) -> torch.Tensor:
    """The word set that holds only a row itself, for every row; [rows, words] int64."""
    row = torch.arange(rows, device=device)
    bit = torch.ones((), dtype=torch.int64, device=device) << row % 64
    word = torch.arange(words, device=device)
    return torch.where(word == row[:, None] // 64, bit[:, None], 0)


def dense(visible: torch.Tensor, rows: int) -> torch.Tensor:
    """Unpack the words of [R, Q, W] to [R, Q, rows] bool."""
    row = torch.arange(rows, device=visible.device)
    # The shift copies the sign into the high bits; the mask drops them.
    return (visible[:, :, row // 64] >> row % 64 & 1).bool()
