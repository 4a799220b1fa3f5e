"""Visibility words, depth and chain flag of random trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ddtree.kernels.tree.ancestors import FORMS, ancestors

from ..timing import Case
from ._trees import batches


def cases() -> Iterator[Case]:
    """Every size against the loops."""
    for batch in batches():
        last = None if batch.parents.is_cuda else "kernel"
        forms = [form for form in FORMS if form not in ("auto", last)]
        args = (batch.parents, batch.count)
        calls = {form: partial(ancestors, *args, form=form) for form in forms}
        yield Case("ancestors", batch.label(), calls)
