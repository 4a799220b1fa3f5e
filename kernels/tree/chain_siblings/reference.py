"""A drafted chain with leaves beside it, by sorting a list per request."""

from __future__ import annotations

import math

import torch

from ..build.reference import float32, pack, rank


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
    requests, steps = chain.shape
    drafted = [steps] * requests if lengths is None else lengths.tolist()
    limits = [nodes] * requests if budgets is None else budgets.tolist()
    trees = []
    for request in range(requests):
        length = min(max(drafted[request], 0), steps)
        spine = chain[request, :length].tolist()
        paths = prefix_costs(chain_logp[request].tolist())
        tree = [(token, step, step + 1) for step, token in enumerate(spine)]
        leaves = []
        for step, token in enumerate(spine):
            options = rank(
                [token, *ids[request, step].tolist()], [-math.inf, *logp[request, step].tolist()]
            )
            for place, option in enumerate(options):
                cost = float32(paths[step] + option.cost)
                if cost < math.inf:
                    leaves.append((cost, step, place, option.token))
        tree += [(token, step, step + 1) for _, step, _, token in sorted(leaves)]
        trees.append(tree[: max(0, min(limits[request], nodes))])
    return pack(trees, nodes, chain.device)


def prefix_costs(chain_logp: list[float]) -> list[float]:
    """Cost of the chain before each step; what is no probability costs infinity."""
    costs = [0.0]
    for weight in chain_logp:
        own = max(0.0, -weight) if weight > -math.inf else math.inf
        costs.append(float32(costs[-1] + own))
    return costs
