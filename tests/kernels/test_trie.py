"""Merged continuations: torch form against walking loops, and what the result means."""

from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.trie import Form, trie

from .drafts import budgets, check_tree, head, ragged, same
from .no_sync import no_host_sync

FORMS: tuple[Form, ...] = ("reference", "vectorised")
SIZES = (1, 7, 63, 64, 65, 130)


def continuations(
    seed: int, shape: tuple[int, int, int], vocabulary: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, vocabulary, shape, generator=random, dtype=torch.int32)
    # Lengths of 0, and some that are out of range.
    lengths = torch.randint(-1, shape[2] + 2, shape[:2], generator=random, dtype=torch.int32)
    return tokens.to(device), lengths.to(device)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, tuple[int, int, int], int, int, list[int] | None]:
    nodes = draw(st.sampled_from(SIZES))
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 9)), draw(st.integers(1, 17)))
    vocabulary = draw(st.sampled_from((1, 2, 3, 1000)))
    return draw(st.integers(0, 2**16)), shape, vocabulary, nodes, draw(budgets(shape[0], nodes))


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_vectorised_equals_reference(
    case: tuple[int, tuple[int, int, int], int, int, list[int] | None], device: torch.device
) -> None:
    seed, shape, vocabulary, nodes, limits = case
    tokens, lengths = continuations(seed, shape, vocabulary, device)
    known = ragged(limits, device)
    tree = trie(tokens, lengths, nodes, budgets=known, form="vectorised")
    check_tree(tree, nodes)
    assert same(tree, trie(tokens, lengths, nodes, budgets=known, form="reference"))
    # Nothing of a request without a budget depends on how wide the layout is.
    wide = trie(tokens, lengths, 200, form="vectorised")
    assert same(head(wide, nodes), trie(tokens, lengths, nodes, form="vectorised"))


@pytest.mark.parametrize("form", FORMS)
def test_shared_beginnings_are_merged(form: Form, device: torch.device) -> None:
    lines = [[5, 6, 7], [5, 6, 8], [9, 6, 7], [5, 6, 7], [5, 2, 0]]
    tokens = torch.tensor([lines], dtype=torch.int64, device=device)
    lengths = torch.tensor([[3, 3, 1, 3, 2]], dtype=torch.int32, device=device)
    tree = trie(tokens, lengths, 8, form=form)
    assert tree.tokens.tolist() == [[5, 6, 7, 8, 9, 2, -1, -1]]
    assert tree.parents.tolist() == [[0, 1, 2, 2, 0, 1, 0, 0]]
    assert tree.depth.tolist() == [[1, 2, 3, 3, 1, 2, 0, 0]]
    assert tree.count.tolist() == [6]
    assert trie(tokens, lengths, 4, form=form).tokens.tolist() == [[5, 6, 7, 8]]


@pytest.mark.parametrize("form", FORMS)
def test_every_path_is_the_beginning_of_a_continuation(form: Form, device: torch.device) -> None:
    tokens, lengths = continuations(7, (1, 8, 6), 2, device)
    tree = trie(tokens, lengths, 48, form=form)
    paths: list[tuple[int, ...]] = [()]
    for node in range(int(tree.count[0])):
        paths.append((*paths[int(tree.parents[0, node])], int(tree.tokens[0, node])))
    ends = lengths[0].clamp(0, 6).tolist()
    lines = zip(tokens[0].tolist(), ends, strict=True)
    begun = {tuple(line[:cut]) for line, end in lines for cut in range(end + 1)}
    assert set(paths) == begun
    assert len(paths) == len(begun)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", SIZES)
def test_one_continuation_is_a_chain(width: int, form: Form, device: torch.device) -> None:
    tokens = torch.arange(width, dtype=torch.int32, device=device).expand(1, 3, width).contiguous()
    lengths = torch.tensor([[width, width, width // 2]], dtype=torch.int32, device=device)
    tree = trie(tokens, lengths, width, form=form)
    assert tree.parents.tolist() == tree.tokens.tolist() == [list(range(width))]


@pytest.mark.parametrize("form", FORMS)
def test_distinct_first_tokens_make_a_star(form: Form, device: torch.device) -> None:
    tokens = torch.arange(6, dtype=torch.int32, device=device).view(1, 6, 1)
    tree = trie(tokens, torch.ones(1, 6, dtype=torch.int32, device=device), 6, form=form)
    assert tree.tokens.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert tree.parents.tolist() == [[0] * 6]


@pytest.mark.parametrize("form", FORMS)
def test_batch_without_requests_continuations_or_nodes(form: Form, device: torch.device) -> None:
    for shape, nodes in (((0, 3, 2), 4), ((2, 0, 2), 4), ((2, 3, 0), 4), ((2, 3, 2), 0)):
        tokens = torch.zeros(shape, dtype=torch.int32, device=device)
        lengths = torch.ones(shape[:2], dtype=torch.int32, device=device)
        tree = trie(tokens, lengths, nodes, form=form)
        check_tree(tree, nodes)
        assert tree.count.tolist() == [0] * shape[0]


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    tokens, lengths = continuations(1, (3, 5, 9), 2, device)
    limits = ragged([64, 0, 3], device)
    with no_host_sync():
        trie(tokens, lengths, 64, budgets=limits, form="vectorised")


def test_auto_is_the_vectorised_form(device: torch.device) -> None:
    tokens, lengths = continuations(2, (2, 4, 5), 2, device)
    assert same(trie(tokens, lengths, 9), trie(tokens, lengths, 9, form="vectorised"))


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


TOKENS = torch.zeros((2, 3, 4), dtype=torch.int32)
LENGTHS = torch.zeros((2, 3), dtype=torch.int32)
GIVEN: dict[str, Any] = {"tokens": TOKENS, "lengths": LENGTHS, "budget": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": TOKENS.float()}, "tokens: expected dtype"),
        ({"tokens": TOKENS[0]}, r"tokens: expected shape \[any, any, any\]"),
        ({"tokens": TOKENS.mT}, "tokens: expected a contiguous tensor"),
        ({"lengths": LENGTHS.long()}, "lengths: expected dtype"),
        ({"lengths": LENGTHS[:1]}, r"lengths: expected shape \[2, 3\], found \[1, 3\]"),
        ({"lengths": LENGTHS.to("meta")}, "lengths: expected device cpu, found meta"),
        ({"budget": -1}, "budget: expected 0 to 1024, found -1"),
        ({"budget": 1025}, "budget: expected 0 to 1024, found 1025"),
        ({"budgets": torch.zeros(3, dtype=torch.int32)}, r"budgets: expected shape \[2\]"),
        ({"form": "kernel"}, "form: expected one of auto, reference, vectorised"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trie(**(GIVEN | change))
