"""Visibility words, depth and the chain flag in every form against climbing loops."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.ancestors import Ancestors, Form, ancestors, dense, kernel, words_for

from . import trees
from .no_sync import no_host_sync
from .trees import Shape

QUICK = settings(max_examples=150, deadline=None)
# A program takes a tenth of a second in the interpreter.
SLOW = settings(max_examples=30, deadline=None)
FORMS: tuple[Form, ...] = ("reference", "vectorised", "kernel")
CASES = trees.batches(duplicates=True)


@pytest.fixture(autouse=True, scope="module")
def poison() -> Iterator[None]:
    """Outputs start as values that no row gets, so that an unwritten slot is seen."""
    plain = kernel.outputs

    def poisoned(*args: Any) -> Any:
        visible, depth, is_chain = plain(*args)
        return visible.fill_(-77), depth.fill_(-77), is_chain.view(torch.int8).fill_(77).bool()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "outputs", poisoned)
        yield


def check(case: tuple[list[Shape], int], extra: int, form: Form, device: torch.device) -> None:
    tree = trees.batch(*case, device)
    padding = torch.arange(case[1], device=device) >= tree.count[:, None]
    # What padding holds is no business of a consumer; here it would make a long chain.
    parents = torch.where(padding, torch.arange(case[1], device=device), tree.parents)
    parents = parents.to(torch.int32)
    words = words_for(case[1]) + extra
    found = ancestors(parents, tree.count, words=words, form=form)
    expected = ancestors(parents, tree.count, words=words, form="reference")
    for name, one, other in zip(Ancestors._fields, found, expected, strict=True):
        assert one.dtype == other.dtype, name
        assert one.tolist() == other.tolist(), name
    assert found.visible.is_contiguous()
    assert torch.equal(found.depth[:, 1:], tree.depth)


@QUICK
@given(case=CASES, extra=st.integers(0, 2))
def test_vectorised_equals_reference(
    case: tuple[list[Shape], int], extra: int, device: torch.device
) -> None:
    check(case, extra, "vectorised", device)


@SLOW
@given(case=CASES, extra=st.integers(0, 2))
def test_kernel_equals_reference(
    case: tuple[list[Shape], int], extra: int, device: torch.device
) -> None:
    check(case, extra, "kernel", device)


@settings(max_examples=50, deadline=None)
@given(case=CASES)
def test_words_are_paths(case: tuple[list[Shape], int]) -> None:
    """What the result means, without the reference."""
    shapes, width = case
    tree = trees.batch(shapes, width)
    found = ancestors(tree.parents, tree.count)
    mask = dense(found.visible, width + 1)
    for shape, seen, is_chain in zip(shapes, mask, found.is_chain.tolist(), strict=True):
        for row in range(width + 1):
            path = shape.path(row) if row <= shape.count else [row]
            assert seen[row].nonzero()[:, 0].tolist() == path
        causal = torch.ones_like(seen).tril()[: shape.count + 1, : shape.count + 1]
        assert is_chain == torch.equal(seen[: shape.count + 1, : shape.count + 1], causal)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [*trees.WIDTHS, 256])
def test_full_chain(width: int, form: Form, device: torch.device) -> None:
    tree = trees.batch([trees.chain(width), trees.empty()], width, device)
    found = ancestors(tree.parents, tree.count, form=form)
    assert found.visible.shape == (2, width + 1, words_for(width))
    rows = torch.arange(width + 1, device=device)
    mask = dense(found.visible, width + 1)
    assert torch.equal(mask[0], rows[:, None] >= rows)
    assert torch.equal(mask[1], rows[:, None] == rows)
    assert found.depth.tolist() == [rows.tolist(), [0] * (width + 1)]
    assert found.is_chain.tolist() == [True, True]


@pytest.mark.parametrize("form", FORMS)
def test_sign_bit_is_row_63(form: Form, device: torch.device) -> None:
    tree = trees.batch([trees.chain(64)], 64, device)
    visible = ancestors(tree.parents, tree.count, form=form).visible
    assert visible[0, 62:65].tolist() == [[2**63 - 1, 0], [-1, 0], [-1, 1]]


@pytest.mark.parametrize("form", FORMS)
def test_one_branch_makes_no_chain(form: Form, device: torch.device) -> None:
    branched = Shape(parents=(0, 1, 2, 2), tokens=(0, 1, 2, 3))
    shapes = [branched, trees.truncated(branched, 3), trees.star(1), trees.star(2)]
    tree = trees.batch(shapes, 7, device)
    is_chain = ancestors(tree.parents, tree.count, form=form).is_chain
    assert is_chain.tolist() == [False, True, True, False]


@pytest.mark.parametrize("form", FORMS)
def test_batch_without_requests_or_nodes(form: Form, device: torch.device) -> None:
    parents = torch.empty((0, 7), dtype=torch.int32, device=device)
    count = torch.empty(0, dtype=torch.int32, device=device)
    found = ancestors(parents, count, form=form)
    assert [list(out.shape) for out in found] == [[0, 8, 1], [0, 8], [0]]
    parents = torch.empty((2, 0), dtype=torch.int32, device=device)
    found = ancestors(parents, torch.zeros(2, dtype=torch.int32, device=device), form=form)
    assert [out.tolist() for out in found] == [[[[1]], [[1]]], [[0], [0]], [True, True]]


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    tree = trees.batch([trees.random_tree(130, 1), trees.empty()], 130, device)
    with no_host_sync():
        found = ancestors(tree.parents, tree.count, form="vectorised")
        dense(found.visible, 131)


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


def test_words_for() -> None:
    assert [words_for(nodes) for nodes in (0, 1, 63, 64, 127, 128)] == [1, 1, 1, 2, 2, 3]


PARENTS = torch.zeros((2, 64), dtype=torch.int32)
COUNT = torch.zeros(2, dtype=torch.int32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parents": PARENTS.long()}, "parents: expected dtype"),
        ({"parents": PARENTS[0]}, r"parents: expected shape \[any, any\]"),
        ({"parents": PARENTS.T.contiguous().T}, "parents: expected a contiguous"),
        ({"count": COUNT[:1]}, "count: expected shape"),
        ({"count": COUNT.float()}, "count: expected dtype"),
        ({"words": 1}, "words: expected 2 to 64, found 1"),
        ({"words": 65}, "words: expected 2 to 64, found 65"),
        ({"form": "triton"}, "form: expected one of auto"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ancestors(**{"parents": PARENTS, "count": COUNT, **change})


def test_wrong_words_to_unpack() -> None:
    visible = torch.zeros((2, 3, 1), dtype=torch.int64)
    with pytest.raises(ValueError, match="rows: expected 0 to 64, found 65"):
        dense(visible, 65)
    with pytest.raises(ValueError, match="visible: expected dtype"):
        dense(visible.int(), 3)
