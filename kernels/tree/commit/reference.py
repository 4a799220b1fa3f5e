"""Move accepted rows one request at a time: read all of them, then write all of them."""

from __future__ import annotations

import torch


def commit(
    views: tuple[torch.Tensor, ...],
    slots: torch.Tensor,
    perm: torch.Tensor,
    accepted: torch.Tensor,
    row_start: torch.Tensor | None = None,
) -> None:
    """Write place 1 to `accepted` of every request in every view; see the launcher for shapes."""
    rows = perm.shape[1]
    flat = slots.reshape(-1).tolist()
    for view in views:
        block = view.shape[1]
        for request, path in enumerate(perm.tolist()):
            start = request * rows if row_start is None else int(row_start[request])
            pairs = [
                (flat[start + path[place]], flat[start + place])
                for place in range(1, int(accepted[request]) + 1)
            ]
            pairs = [(source, to) for source, to in pairs if source >= 0 and to >= 0]
            kept = [view[source // block, source % block].clone() for source, _ in pairs]
            for (_, to), row in zip(pairs, kept, strict=True):
                view[to // block, to % block] = row
