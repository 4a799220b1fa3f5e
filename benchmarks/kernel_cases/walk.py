"""The walk of given target tokens, and of logits with a vocabulary of 32,000."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from ddtree.kernels.tree.walk import FORMS, walk, walk_logits

from ..timing import Case
from ._trees import Drafted, batches, drafted

VOCABULARY = 32_000


def cases() -> Iterator[Case]:
    """Every size against the loops; on a GPU also from logits, against argmax and walk."""
    for batch in batches():
        yield _case(batch)
    if torch.cuda.is_available():
        for requests, nodes in ((1, 64), (8, 64), (64, 64)):
            yield _logits_case(drafted(requests, nodes))


def _case(batch: Drafted) -> Case:
    args = (batch.target, batch.tokens, batch.parents, batch.count)
    last = None if batch.target.is_cuda else "kernel"
    forms = [form for form in FORMS if form not in ("auto", last)]
    return Case("walk", batch.label(), {form: partial(walk, *args, form=form) for form in forms})


def _logits_case(batch: Drafted) -> Case:
    shape = (*batch.target.shape, VOCABULARY)
    logits = torch.randn(shape, dtype=torch.bfloat16, device=batch.target.device)
    logits.scatter_(2, batch.target[:, :, None], 100.0)
    args = (logits, batch.tokens, batch.parents, batch.count)
    return Case(
        "walk",
        f"logits V={VOCABULARY} {batch.label()}",
        {form: partial(walk_logits, *args, form=form) for form in ("vectorised", "kernel")},
    )
