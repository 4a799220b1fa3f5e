"""Move accepted rows without host synchronisation: one gather, then one scatter per view."""

from __future__ import annotations

import torch


def moves(
    slots: torch.Tensor,
    perm: torch.Tensor,
    accepted: torch.Tensor,
    row_start: torch.Tensor | None,
    longest: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Source and destination slots of R * longest moves, a number that no data decides.

    A place that takes no row, or has a padding slot, repeats the first move that is made, which
    writes the same values again. A place whose source is padding writes its own row onto itself.
    """
    requests, rows = perm.shape
    place = torch.arange(1, longest + 1, device=perm.device)
    first = torch.arange(requests, device=perm.device) * rows
    start = (first if row_start is None else row_start[:requests].long())[:, None]
    taken = place <= accepted[:, None]
    flat, last = slots.reshape(-1), max(slots.numel() - 1, 0)
    # Places past a request's rows may point anywhere; they are not taken.
    to = torch.where(taken, flat[(start + place).clamp(max=last)], -1)
    origin = flat[(start + perm[:, 1 : longest + 1]).clamp(max=last)]
    source = torch.where((origin >= 0) & taken, origin, to)
    writes = (to >= 0).reshape(-1)
    every = torch.arange(writes.numel(), device=perm.device)
    index = torch.where(writes, every, writes.to(torch.int8).argmax())
    # Without a single write all moves are slot 0 onto itself.
    return source.reshape(-1)[index].clamp(min=0), to.reshape(-1)[index].clamp(min=0)


def move(views: tuple[torch.Tensor, ...], source: torch.Tensor, to: torch.Tensor) -> None:
    """`view[to] = view[source]` by slot, in views of one block size; all reads come first."""
    block = views[0].shape[1]
    to_block, to_slot = to // block, to % block
    from_block, from_slot = source // block, source % block
    for view in views:
        if view.stride(0) == block * view.stride(1):
            # Blocks that follow each other are one list of slots, which copies whole rows.
            flat = view.flatten(0, 1)
            flat.index_copy_(0, to, flat.index_select(0, source))
        else:
            view[to_block, to_slot] = view[from_block, from_slot]
