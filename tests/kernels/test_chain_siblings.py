"""A chain with leaves: torch form against sorting loops, and what the result means."""

from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.chain_siblings import Form, Tree, chain_siblings

from .drafts import INF, KINDS, budgets, check_tree, drafts, head, ragged, same
from .no_sync import no_host_sync

FORMS: tuple[Form, ...] = ("reference", "vectorised")
SIZES = (1, 7, 63, 64, 65, 130)
CPU = torch.device("cpu")


def drafted(
    seed: int,
    kind: str,
    shape: tuple[int, int, int],
    *,
    repeats: bool,
    device: torch.device = CPU,
) -> dict[str, Any]:
    """A chain whose tokens may or may not be among the candidates."""
    ids, logp = drafts(seed, kind, shape, repeats=repeats, device=device)
    chain, chain_logp = drafts(
        seed + 1, kind, (*shape[:1], shape[1], shape[2] + 1), repeats=False, device=device
    )
    return {
        "chain": chain[..., 0].contiguous(),
        "chain_logp": chain_logp[..., 0].contiguous(),
        "ids": ids,
        "logp": logp,
    }


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.sampled_from(SIZES))
    batch, steps = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    known = st.lists(st.integers(-1, steps + 1), min_size=batch, max_size=batch)
    return {
        "seed": draw(st.integers(0, 2**16)),
        "kind": draw(st.sampled_from(KINDS)),
        "shape": (batch, steps, draw(st.integers(0, 16))),
        "repeats": draw(st.booleans()),
        "nodes": nodes,
        "lengths": draw(st.none() | known),
        "budgets": draw(budgets(batch, nodes)),
    }


def grown(case: dict[str, Any], form: Form, device: torch.device) -> Tree:
    names = ("seed", "kind", "shape", "repeats")
    return chain_siblings(
        **drafted(**{name: case[name] for name in names}, device=device),
        budget=case["nodes"],
        lengths=ragged(case["lengths"], device),
        budgets=ragged(case["budgets"], device),
        form=form,
    )


@settings(max_examples=150, deadline=None)
@given(case=cases())
def test_vectorised_equals_reference(case: dict[str, Any], device: torch.device) -> None:
    tree = grown(case, "vectorised", device)
    check_tree(tree, case["nodes"])
    assert same(tree, grown(case, "reference", device))
    whole = grown(case | {"nodes": 200, "budgets": None}, "vectorised", device)
    part = grown(case | {"budgets": None}, "vectorised", device)
    assert same(head(whole, case["nodes"]), part)


@pytest.mark.parametrize("form", FORMS)
def test_leaves_follow_the_chain_best_first(form: Form, device: torch.device) -> None:
    chain = torch.tensor([[1, 2]], dtype=torch.int32, device=device)
    ids = torch.tensor([[[1, 7, 8], [9, 2, 9]]], dtype=torch.int32, device=device)
    # Paths: 7 at -0.75, 8 at -3; below the chain's -0.5, 9 at -0.75 too.
    logp = torch.tensor([[[-0.5, -0.75, -3.0], [-0.25, -5.0, -0.125]]], device=device)
    own = torch.tensor([[-0.5, -5.0]], device=device)
    tree = chain_siblings(chain, own, ids, logp, 6, form=form)
    assert tree.tokens.tolist() == [[1, 2, 7, 9, 8, -1]]
    assert tree.parents.tolist() == [[0, 1, 0, 1, 0, 0]]
    assert tree.depth.tolist() == [[1, 2, 1, 2, 1, 0]]
    assert tree.count.tolist() == [5]


@pytest.mark.parametrize("form", FORMS)
def test_an_impossible_chain_stays_without_leaves_below(form: Form, device: torch.device) -> None:
    given = drafted(0, "spread", (1, 3, 2), repeats=False, device=device)
    given["chain"][:] = 50
    given["chain_logp"][0, 0] = -INF
    tree = chain_siblings(**given, budget=8, form=form)
    assert tree.tokens[0, :3].tolist() == [50, 50, 50]
    assert tree.depth.tolist() == [[1, 2, 3, 1, 1, 0, 0, 0]]


@pytest.mark.parametrize("form", FORMS)
def test_short_budget_and_short_chain(form: Form, device: torch.device) -> None:
    given = drafted(3, "spread", (3, 5, 4), repeats=False, device=device)
    given["chain"][:] = 50
    lengths, limits = ragged([5, 2, 0], device), ragged([3, 7, 7], device)
    tree = chain_siblings(**given, budget=7, lengths=lengths, budgets=limits, form=form)
    check_tree(tree, 7)
    assert tree.count.tolist() == [3, 7, 0]
    assert tree.depth[0].tolist() == [1, 2, 3, 0, 0, 0, 0]
    assert tree.depth[1, :2].tolist() == [1, 2]
    assert int(tree.depth[1].max()) == 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steps", SIZES)
def test_without_candidates_it_is_a_chain(steps: int, form: Form, device: torch.device) -> None:
    given = drafted(1, "spread", (2, steps, 0), repeats=False, device=device)
    tree = chain_siblings(**given, budget=steps, form=form)
    assert torch.equal(tree.tokens, given["chain"])
    assert tree.parents.tolist() == [list(range(steps))] * 2


@pytest.mark.parametrize("form", FORMS)
def test_batch_without_requests_steps_or_nodes(form: Form, device: torch.device) -> None:
    for shape, nodes in (((0, 3, 2), 4), ((2, 0, 2), 4), ((2, 3, 2), 0)):
        given = drafted(1, "spread", shape, repeats=False, device=device)
        tree = chain_siblings(**given, budget=nodes, form=form)
        check_tree(tree, nodes)
        assert tree.count.tolist() == [0] * shape[0]


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    given = drafted(1, "hostile", (3, 7, 8), repeats=True, device=device)
    lengths, limits = ragged([7, 0, 3], device), ragged([64, 0, 3], device)
    with no_host_sync():
        chain_siblings(**given, budget=64, lengths=lengths, budgets=limits, form="vectorised")


def test_auto_is_the_vectorised_form(device: torch.device) -> None:
    given = drafted(2, "ties", (2, 4, 5), repeats=True, device=device)
    auto = chain_siblings(**given, budget=9)
    assert same(auto, chain_siblings(**given, budget=9, form="vectorised"))


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


CHAIN = torch.zeros((2, 3), dtype=torch.int32)
IDS = torch.zeros((2, 3, 4), dtype=torch.int32)
GIVEN: dict[str, Any] = {
    "chain": CHAIN,
    "chain_logp": CHAIN.float(),
    "ids": IDS,
    "logp": IDS.float(),
    "budget": 4,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chain": CHAIN.float()}, "chain: expected dtype"),
        ({"chain": CHAIN[0]}, r"chain: expected shape \[any, any\]"),
        ({"chain_logp": CHAIN.double()}, "chain_logp: expected dtype"),
        ({"ids": IDS.long()}, "ids: expected dtype"),
        ({"ids": IDS[:, :2]}, r"ids: expected shape \[2, 3, any\]"),
        ({"logp": IDS.float()[..., :2]}, r"logp: expected shape \[2, 3, 4\]"),
        ({"logp": IDS.float().to("meta")}, "logp: expected device cpu, found meta"),
        ({"budget": 1025}, "budget: expected 0 to 1024, found 1025"),
        ({"lengths": CHAIN}, r"lengths: expected shape \[2\]"),
        ({"budgets": torch.zeros(2)}, "budgets: expected dtype"),
        ({"form": "kernel"}, "form: expected one of auto, reference, vectorised"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chain_siblings(**(GIVEN | change))
