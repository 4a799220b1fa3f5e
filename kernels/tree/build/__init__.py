"""The most probable prefixes of a block of drafted positions, as one tree per request."""

from __future__ import annotations

from typing import Literal

import torch

from .. import checks
from ..layout import Tree
from . import reference, vectorised

__all__ = ["MAX_BUDGET", "Form", "Tree", "build"]

Form = Literal["auto", "reference", "vectorised", "kernel"]
FORMS = ("auto", "reference", "vectorised", "kernel")
INTS = (torch.int32, torch.int64)
MAX_BUDGET = 1024
MAX_CANDIDATES = 1024
# Up to so many nodes in all, a heap on the host is quicker than the calls of the vectorised form.
FEW_NODES = 24


def build(
    ids: torch.Tensor,
    logp: torch.Tensor,
    budget: int,
    *,
    budgets: torch.Tensor | None = None,
    spine_first: bool = False,
    max_siblings: int | None = None,
    ranked: bool = False,
    form: Form = "auto",
) -> Tree:
    """Choose the nodes of the highest cumulative log-probability, best first.

    Every prefix of the result is the best tree of its size. Ties go to the smaller depth, then
    to the parent that comes first, then to the better candidate (see README.md). Candidates may
    come in any order; of equal ids at one position the first counts. A log-probability above 0
    counts as 0, NaN as -inf, and what has probability 0 is never chosen.

    Args:
        ids: [R, D, K] int32 or int64, candidate tokens of each drafted position.
        logp: [R, D, K] float32, their natural log-probabilities.
        budget: N, the most nodes of a tree without its root, 0 to 1024.
        budgets: [R] int32, fewer nodes for single requests; values outside of 0 to N count as
            the nearest of the two.
        spine_first: put the chain of every position's best candidate ahead of all other nodes.
        max_siblings: the most children of a node, at least 1; unbounded when None.
        ranked: the caller's word that the candidates are as `candidates` returns them: distinct,
            best first, no NaN, none above 0. They are then taken as they are; if the word is
            broken, the result need not be a tree.
        form: "auto" takes the kernel on a GPU; on a CPU, where reading a tensor waits for nothing,
            the heap for up to 24 nodes in all and the vectorised form for more.

    Returns:
        A `Tree` of width N; `count` is below its budget only where nothing else is possible.

    Raises:
        ValueError: an argument's shape, dtype, device or layout is not as above, or a number is
            out of its range.

    Source: DDTree, Ringel & Romano 2026, arXiv 2604.12989, tree construction.
    """
    _check(ids, logp, budget, budgets, max_siblings, form)
    requests, positions, candidates = ids.shape
    if 0 in (requests, positions, candidates, budget):
        return Tree(*reference.pack([[]] * requests, budget, ids.device))
    chosen = _chosen(form, ids, budget)
    if chosen != "kernel":
        host = reference if chosen == "reference" else vectorised
        return Tree(*host.build(ids, logp, budget, budgets, spine_first, max_siblings, ranked))
    # A machine without a GPU may be without Triton.
    from . import kernel

    out = kernel.outputs(ids, budget)
    kernel.build(out, ids, logp, budgets, spine_first, max_siblings, ranked)
    return Tree(*out)


def _chosen(form: Form, ids: torch.Tensor, budget: int) -> Form:
    if form != "auto":
        return form
    if ids.is_cuda:
        return "kernel"
    few = ids.device.type == "cpu" and len(ids) * budget <= FEW_NODES
    return "reference" if few else "vectorised"


def _check(
    ids: torch.Tensor,
    logp: torch.Tensor,
    budget: int,
    budgets: torch.Tensor | None,
    max_siblings: int | None,
    form: str,
) -> None:
    if form not in FORMS:
        raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {form!r}")
    checks.tensor("ids", ids, (None, None, None), INTS)
    checks.tensor("logp", logp, ids.shape, (torch.float32,), ids.device)
    if ids.shape[2] > MAX_CANDIDATES:
        raise ValueError(
            f"ids: expected at most {MAX_CANDIDATES} candidates per position, found {ids.shape[2]}"
        )
    if not 0 <= budget <= MAX_BUDGET:
        raise ValueError(f"budget: expected 0 to {MAX_BUDGET}, found {budget}")
    if budgets is not None:
        checks.tensor("budgets", budgets, (ids.shape[0],), (torch.int32,), ids.device)
    if max_siblings is not None and max_siblings < 1:
        raise ValueError(f"max_siblings: expected at least 1, found {max_siblings}")
