"""Accepted rows of four layers of 8 heads of 128 in float16, in every layout."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from ddtree.kernels.tree.commit import FORMS, LAYOUTS, CommitPlan, commit

from ..timing import Case
from ._trees import DEEPEST, Drafted, batches, drafted

LAYERS, BLOCK, HEADS, DIM = 4, 16, 8, 128
ROW_BYTES = 2 * HEADS * DIM * 2


def cases() -> Iterator[Case]:
    """Every size in one layout, and one size in all three."""
    for batch in batches():
        yield _case(batch, "halves_first")
    for layout in sorted(LAYOUTS):
        if layout != "halves_first":
            yield _case(drafted(8, 64), layout)


def _case(batch: Drafted, layout: str) -> Case:
    requests, rows = batch.target.shape
    blocks = requests * rows // BLOCK + 1
    shape = {
        "halves_first": (2, blocks, BLOCK, HEADS, DIM),
        "halves_second": (blocks, 2, BLOCK, HEADS, DIM),
        "heads_first": (blocks, HEADS, BLOCK, 2 * DIM),
    }[layout]
    device = batch.target.device
    caches = [torch.zeros(shape, dtype=torch.float16, device=device) for _ in range(LAYERS)]
    slots = torch.arange(requests * rows, device=device).view(requests, rows)
    result = batch.walk()
    place = torch.arange(rows, device=device)
    moved = (place <= result.accepted[:, None]) & (result.perm != place)
    step = (CommitPlan.of_caches(caches, layout), slots, result.perm, result.accepted)
    last = None if batch.target.is_cuda else "kernel"
    calls = {
        form: partial(commit, *step, longest=DEEPEST, form=form)
        for form in FORMS
        if form not in ("auto", last)
    }
    moved_bytes = 2 * LAYERS * ROW_BYTES * int(moved.sum())
    return Case("commit", f"{layout} {batch.label()}", calls, moved_bytes)
