"""The chain of an autoregressive drafter, with the other candidates of each step as leaves."""

from __future__ import annotations

from typing import Literal

import torch

from .. import checks
from ..build import MAX_BUDGET
from ..build.reference import pack
from ..layout import Tree
from . import reference, vectorised

__all__ = ["Form", "Tree", "chain_siblings"]

Form = Literal["auto", "reference", "vectorised"]
FORMS = ("auto", "reference", "vectorised")
INTS = (torch.int32, torch.int64)


def chain_siblings(
    chain: torch.Tensor,
    chain_logp: torch.Tensor,
    ids: torch.Tensor,
    logp: torch.Tensor,
    budget: int,
    *,
    lengths: torch.Tensor | None = None,
    budgets: torch.Tensor | None = None,
    form: Form = "auto",
) -> Tree:
    """Put the drafted chain first, then the most probable leaves beside its nodes.

    The chain is in whatever its probability, as far as the budget goes. Leaves follow by
    cumulative log-probability, ties by depth and then by rank at their step. A leaf with the
    chain's own token or a token that came before at its step is dropped; log-probabilities above
    0 count as 0, NaN as -inf, and what has probability 0 is no leaf.

    Args:
        chain: [R, D] int32 or int64, the drafted tokens.
        chain_logp: [R, D] float32, their natural log-probabilities.
        ids: [R, D, K] of the chain's type, candidates of each step; the chain's token may be
            among them.
        logp: [R, D, K] float32.
        budget: N, 0 to 1024.
        lengths: [R] int32, drafted steps of each request; D when None.
        budgets: [R] int32, fewer nodes for single requests.
        form: "auto" is "vectorised" on every device.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above, or `budget` is
            out of range.
    """
    _check(chain, chain_logp, ids, logp, budget, form)
    for name, value in (("lengths", lengths), ("budgets", budgets)):
        if value is not None:
            checks.tensor(name, value, (len(chain),), (torch.int32,), chain.device)
    if 0 in (*chain.shape, budget):
        return Tree(*pack([[]] * len(chain), budget, chain.device))
    unit = reference if form == "reference" else vectorised
    return Tree(*unit.chain_siblings(chain, chain_logp, ids, logp, budget, lengths, budgets))


def _check(
    chain: torch.Tensor,
    chain_logp: torch.Tensor,
    ids: torch.Tensor,
    logp: torch.Tensor,
    budget: int,
    form: str,
) -> None:
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    float32 = (torch.float32,)
    checks.tensor("chain", chain, (None, None), INTS)
    checks.tensor("chain_logp", chain_logp, chain.shape, float32, chain.device)
    checks.tensor("ids", ids, (*chain.shape, None), (chain.dtype,), chain.device)
    checks.tensor("logp", logp, ids.shape, float32, chain.device)
    if not 0 <= budget <= MAX_BUDGET:
        raise ValueError(f"budget: expected 0 to {MAX_BUDGET}, found {budget}")
