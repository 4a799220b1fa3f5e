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
    depth = (real & (rows > 0)).to(torch.int32)
    visible = own_bits(nodes + 1, words, parents.device).expand(requests, -1, -1)
    for _ in range(nodes.bit_length()):
        # Before step k, a row has counted its 2^k nearest generations, itself included.
        index = anchor[:, :, None].expand(-1, -1, words)
        visible = visible | visible.gather(1, index)
        depth = depth + depth.gather(1, anchor)
        anchor = anchor.gather(1, anchor)
    chain = (parents == rows[:nodes]) | ~real[:, 1:]
    return visible.contiguous(), depth, chain.all(1)


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
