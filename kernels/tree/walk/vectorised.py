"""The walk without host synchronisation: pointer doubling tells which rows match all the way."""

from __future__ import annotations

import torch


def walk(
    target: torch.Tensor,
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
    row_start: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The walk of every request; see the launcher for shapes."""
    requests, nodes = tokens.shape
    rows = torch.arange(nodes + 1, device=tokens.device)
    real = rows <= count[:, None]
    wanted = target if row_start is None else _padded(target, row_start[:requests], nodes + 1)
    above = torch.where(real[:, 1:], parents, 0).long()
    followed = _first_match(wanted, tokens, above, real[:, 1:])
    anchor = torch.cat([rows.new_zeros(requests, 1), above], dim=1)
    on_path = _all_the_way(followed, anchor)
    accepted = on_path.sum(1, dtype=torch.int32) - 1
    bonus_row = torch.where(on_path, rows, 0).amax(1, keepdim=True)
    return (
        _path_first(on_path, real, accepted),
        accepted,
        wanted.gather(1, bonus_row)[:, 0],
        bonus_row[:, 0].to(torch.int32),
    )


def row_starts(count: torch.Tensor) -> torch.Tensor:
    """First row of each request when requests of `count + 1` rows are concatenated; [R] int32."""
    widths = count + 1
    return torch.cumsum(widths, 0, dtype=torch.int32) - widths


def _padded(target: torch.Tensor, row_start: torch.Tensor, rows: int) -> torch.Tensor:
    # Padding rows read some other row's token; no real node has them as its parent.
    index = row_start[:, None] + torch.arange(rows, device=target.device)
    return target[index.clamp(max=target.shape[0] - 1)]


def _first_match(
    wanted: torch.Tensor, tokens: torch.Tensor, above: torch.Tensor, real: torch.Tensor
) -> torch.Tensor:
    """Whether each row is its parent's lowest child that carries the wanted token; [R, N+1]."""
    requests, nodes = tokens.shape
    none = nodes + 1
    child = torch.arange(1, nodes + 1, device=tokens.device)
    matches = real & (wanted.gather(1, above) == tokens)
    candidates = torch.where(matches, child, none)
    lowest = torch.full((requests, nodes + 1), none, device=tokens.device)
    lowest.scatter_reduce_(1, above, candidates, "amin")
    chosen = lowest.gather(1, above) == child
    root = torch.ones_like(wanted[:, :1], dtype=torch.bool)
    return torch.cat([root, chosen], dim=1)


def _all_the_way(followed: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
    """Whether a row and all its ancestors are followed: after k steps, 2^k generations of them."""
    for _ in range((followed.shape[1] - 1).bit_length()):
        followed = followed & followed.gather(1, anchor)
        anchor = anchor.gather(1, anchor)
    return followed


def _path_first(on_path: torch.Tensor, real: torch.Tensor, accepted: torch.Tensor) -> torch.Tensor:
    """Rows on the path, then the other real rows, then padding, each ascending; [R, N+1] int32."""
    rows = torch.arange(on_path.shape[1], device=on_path.device).expand(on_path.shape)
    # A parent's row is smaller than its child's, so ascending rows are the path's own order.
    before = on_path.cumsum(1) - 1
    place = torch.where(on_path, before, rows - before + accepted[:, None])
    place = torch.where(real, place, rows)
    perm = torch.empty(on_path.shape, dtype=torch.int32, device=on_path.device)
    return perm.scatter_(1, place, rows.to(torch.int32))
