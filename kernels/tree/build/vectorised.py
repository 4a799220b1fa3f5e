"""Best-first build level by level, for the whole batch at once and without a host sync."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from .tables import Tables, tables

# A key is a cost's bits above the number of a pair: costs are not negative, so the order of
# their bits is their order, and equal costs fall back to the number, which is the tie rule.
PAIR = (1 << 32) - 1
# The bits of infinity, above the number 0.
IMPOSSIBLE = 0x7F800000 << 32
# The sign bit of a key puts it ahead of all that have none.
AHEAD = -(1 << 63)
# Comparisons up to which comparing all pairs is quicker than to sort.
FEW = 1 << 14


def build(
    ids: torch.Tensor,
    logp: torch.Tensor,
    nodes: int,
    budgets: torch.Tensor | None,
    spine_first: bool,
    max_siblings: int | None,
    ranked: bool,
) -> tuple[torch.Tensor, ...]:
    """See `build`; returns tokens, parents, depth and count."""
    _, positions, stride = ids.shape
    ranks = min(nodes, stride, max_siblings or stride)
    table = tables(nodes, positions, ranks, stride, ids.device)
    tokens, cost = (ids, logp.abs()) if ranked else rank(ids, logp)
    keys, kept = grow(cost, table)
    if table.padding < nodes:
        # Every tree of these sizes ends in padding.
        keys = pad(keys, (0, nodes - table.padding), value=IMPOSSIBLE)
    if spine_first:
        lead = keys.index_select(1, table.spine)
        lead = torch.where(lead < IMPOSSIBLE, lead | AHEAD, lead)
        keys = keys.index_copy(1, table.spine, lead)
    return read_out(keys, kept, tokens, table, nodes, budgets)


def rank(ids: torch.Tensor, logp: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Candidates best first as ids and costs [R, D, K]; what must not be chosen costs infinity."""
    cost = logp.nan_to_num(nan=-torch.inf, posinf=0.0, neginf=-torch.inf).clamp_(max=0.0).abs_()
    cost, order = cost.masked_fill_(repeated(ids), torch.inf).sort(dim=-1, stable=True)
    return ids.gather(-1, order), cost


def repeated(ids: torch.Tensor) -> torch.Tensor:
    """Whether an equal id comes before: [R, D, K] to bool."""
    if ids.numel() * ids.shape[-1] <= FEW:
        return (ids[..., None] == ids[..., None, :]).tril_(-1).any(-1)
    value, order = ids.sort(dim=-1, stable=True)
    same = value[..., 1:] == value[..., :-1]
    return torch.zeros_like(ids, dtype=torch.bool).scatter_(-1, order[..., 1:], same)


def grow(cost: torch.Tensor, table: Tables) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys [R, pairs] of all pairs, and numbers [R, 1 + kept] of the root and the parents."""
    keys = table.pair.expand(len(cost), -1).clone()
    # The upper half of each key, as the float that it is on a little-endian machine.
    total = keys.view(torch.float32)[:, 1::2]
    torch.gather(cost.flatten(1), 1, table.step.expand(len(cost), -1), out=total)
    first, *strong = keys.split_with_sizes(table.parts, 1)[::2]
    best, *totals = total.split_with_sizes(table.sizes, 1)
    kept = [table.root.expand(len(cost), 1), first]
    for level, key, own in zip(table.levels, strong, totals, strict=True):
        own.add_(best.index_select(1, level.up))
        if level.keep > 0:
            # Keys are distinct, so a selection that is not stable has one result.
            values, chosen = key.topk(level.keep, largest=False)
            best = own.gather(1, chosen)
            kept.append(values)
    return keys, torch.cat(kept, 1).bitwise_and_(PAIR)


def read_out(
    keys: torch.Tensor,
    kept: torch.Tensor,
    tokens: torch.Tensor,
    table: Tables,
    nodes: int,
    budgets: torch.Tensor | None,
) -> tuple[torch.Tensor, ...]:
    """The best `nodes` of all pairs, with the parents' numbers turned into rows."""
    key = keys.topk(nodes, largest=False).values
    real = key < IMPOSSIBLE
    if budgets is not None:
        real &= table.place <= budgets[:, None]
    pair = (key & PAIR).masked_fill_(~real, table.padding)
    # The root's row is 0; padding writes to a number of its own.
    rows = table.place.new_zeros((len(keys), table.padding + 2))
    rows.scatter_(1, pair, table.place.expand_as(pair))
    parents = rows.gather(1, kept.gather(1, table.parent.take(pair))).to(torch.int32)
    drafted = tokens.flatten(1).gather(1, table.cell.take(pair)).masked_fill_(~real, -1)
    count = real.sum(1, dtype=torch.int32)
    return drafted.to(torch.int32), parents, table.depth.take(pair), count
