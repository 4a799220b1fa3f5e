"""Several candidate continuations of each request, merged where their beginnings agree."""

from __future__ import annotations

from typing import Literal

import torch

from .. import checks
from ..build import MAX_BUDGET
from ..build.reference import pack
from ..layout import Tree
from . import reference, vectorised

__all__ = ["Form", "Tree", "trie"]

Form = Literal["auto", "reference", "vectorised"]
FORMS = ("auto", "reference", "vectorised")
INTS = (torch.int32, torch.int64)


def trie(
    tokens: torch.Tensor,
    lengths: torch.Tensor,
    budget: int,
    *,
    budgets: torch.Tensor | None = None,
    form: Form = "auto",
) -> Tree:
    """Merge continuations into a tree whose nodes are in the order in which they appear.

    The first continuation comes whole, then what the second adds to it, and so on; the budget
    cuts the end off.

    Args:
        tokens: [R, C, L] int32 or int64, C continuations of each request, the best first.
        lengths: [R, C] int32, tokens of each continuation; what lies outside of 0 to L counts as
            the nearest of the two.
        budget: N, 0 to 1024.
        budgets: [R] int32, fewer nodes for single requests.
        form: "auto" is "vectorised" on every device.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above, or `budget` is
            out of range.
    """
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    checks.tensor("tokens", tokens, (None, None, None), INTS)
    checks.tensor("lengths", lengths, tokens.shape[:2], (torch.int32,), tokens.device)
    if budgets is not None:
        checks.tensor("budgets", budgets, (len(tokens),), (torch.int32,), tokens.device)
    if not 0 <= budget <= MAX_BUDGET:
        raise ValueError(f"budget: expected 0 to {MAX_BUDGET}, found {budget}")
    if 0 in (*tokens.shape, budget):
        return Tree(*pack([[]] * len(tokens), budget, tokens.device))
    unit = reference if form == "reference" else vectorised
    return Tree(*unit.trie(tokens, lengths, budget, budgets))
