"""A drafted chain with leaves beside it, for the whole batch and without a host sync."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ..build.vectorised import AHEAD, IMPOSSIBLE, PAIR, rank


def chain_siblings(
    chain: torch.Tensor,
    chain_logp: torch.Tensor,
    ids: torch.Tensor,
    logp: torch.Tensor,
    nodes: int,
    lengths: torch.Tensor | None,
    budgets: torch.Tensor | None,
) -> tuple[torch.Tensor, ...]:
    """See `chain_siblings`; returns tokens, parents, depth and count."""
    steps, width = chain.shape[1], ids.shape[2] + 1
    # An impossible candidate that comes first drops the leaves with the chain's own token.
    tokens, cost = rank(torch.cat((chain[..., None], ids), -1), pad(logp, (1, 0), value=-torch.inf))
    total = path_costs(chain_logp)[..., None] + cost
    number = torch.arange(steps * (width + 1), device=chain.device)
    spine = (number[:steps] | AHEAD).expand_as(chain)
    leaves = torch.add(number[steps:], total.flatten(1).view(torch.int32), alpha=1 << 32)
    if lengths is not None:
        drafted = number[:steps] < lengths[:, None]
        spine = spine.where(drafted, IMPOSSIBLE)
        leaves = leaves.where(drafted[..., None].expand_as(total).flatten(1), IMPOSSIBLE)
    keys = torch.cat((spine, leaves), 1)
    keys = pad(keys, (0, max(0, nodes - keys.shape[1])), value=IMPOSSIBLE)
    key = keys.topk(nodes, largest=False).values
    real = key < IMPOSSIBLE
    if budgets is not None:
        real &= torch.arange(nodes, device=chain.device) < budgets[:, None]
    chosen = torch.where(real, key & PAIR, 0)
    drawn = torch.cat((chain, tokens.flatten(1)), 1).gather(1, chosen).masked_fill_(~real, -1)
    # The chain's node of a step and its leaves hang from the chain's node before, at row `step`.
    step = torch.where(chosen < steps, chosen, (chosen - steps) // width)
    return (
        drawn.to(torch.int32),
        step.where(real, 0).to(torch.int32),
        (step + 1).where(real, 0).to(torch.int32),
        real.sum(1, dtype=torch.int32),
    )


def path_costs(chain_logp: torch.Tensor) -> torch.Tensor:
    """Cost of the chain before each step [R, D], added up step by step in float32."""
    own = (
        chain_logp.nan_to_num(nan=-torch.inf, posinf=0.0, neginf=-torch.inf).clamp_(max=0.0).abs_()
    )
    cost = torch.zeros_like(own)
    for step in range(1, own.shape[1]):
        torch.add(cost[:, step - 1], own[:, step - 1], out=cost[:, step])
    return cost
