"""The index that puts accepted rows first, padded and ragged."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.rows import permute_rows, reference, row_order
from ddtree.kernels.tree.walk import row_starts, walk

from . import trees
from .no_sync import no_host_sync
from .trees import Shape


def walked(
    shapes: list[Shape], width: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """The permutations of walks to the last row of each tree, and the counts."""
    tree = trees.batch(shapes, width, device)
    target = torch.full((len(shapes), width + 1), -7, dtype=torch.int32, device=device)
    for request, shape in enumerate(shapes):
        path = shape.path(shape.count)
        for parent, child in itertools.pairwise(path):
            target[request, parent] = shape.tokens[child - 1]
    return walk(target, tree.tokens, tree.parents, tree.count).perm, tree.count


@settings(max_examples=100, deadline=None)
@given(case=trees.batches(), before=st.integers(0, 3), after=st.integers(0, 3))
def test_order_equals_reference(
    case: tuple[list[Shape], int], before: int, after: int, device: torch.device
) -> None:
    perm, count = walked(*case, device)
    starts = row_starts(count) + before
    rows = int(count.sum()) + len(case[0]) + before + after
    for start, total in ((starts, rows), (None, perm.numel() + after)):
        order = row_order(perm, count, rows=total, row_start=start)
        assert order.tolist() == reference.row_order(perm, count, total, start).tolist()
        assert sorted(order.tolist()) == list(range(total))


def test_path_first_and_other_rows_where_they_were(device: torch.device) -> None:
    perm = torch.tensor([[0, 2, 1, 3], [0, 1, 2, 3], [0, 3, 1, 2]], device=device).int()
    count = torch.tensor([2, 0, 3], device=device).int()
    starts = torch.tensor([1, 4, 5, 9], device=device)
    order = row_order(perm, count, rows=10, row_start=starts)
    assert order.tolist() == [0, 1, 3, 2, 4, 5, 8, 6, 7, 9]
    ids = torch.arange(20, device=device).reshape(10, 2)
    assert permute_rows(ids, order)[:, 0].tolist() == [0, 2, 6, 4, 8, 10, 16, 12, 14, 18]


def test_no_wait_for_the_device(device: torch.device) -> None:
    perm, count = walked([trees.random_tree(20, 1), trees.empty()], 20, device)
    with no_host_sync():
        order = row_order(perm, count, rows=22, row_start=row_starts(count))
        permute_rows(torch.zeros((22, 3), device=device), order)


PERM = torch.zeros((2, 8), dtype=torch.int32)
COUNT = torch.zeros(2, dtype=torch.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"perm": PERM.long()}, "perm: expected dtype"),
        ({"count": COUNT.long()}, "count: expected dtype"),
        ({"rows": 15}, "rows: expected at least 16, found 15"),
        ({"row_start": COUNT, "rows": 1}, "rows: expected at least 2, found 1"),
        ({"row_start": COUNT.float()}, "row_start: expected dtype"),
        ({"row_start": COUNT[:1]}, "row_start: expected 2 or 3 starts, found 1"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_order(**{"perm": PERM, "count": COUNT, "rows": 16, **change})


def test_wrong_order() -> None:
    with pytest.raises(ValueError, match="order: expected shape"):
        permute_rows(torch.zeros((3, 2)), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match="tensor: expected at least one axis"):
        permute_rows(torch.zeros(()), torch.zeros(2, dtype=torch.int64))
