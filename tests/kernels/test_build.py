"""Best-first build: forms equal bit for bit, and equal to sorting every path there is."""

import itertools
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.build import Form, Tree, build, kernel, vectorised
from ddtree.kernels.tree.build.tables import columns, pairs
from ddtree.kernels.tree.candidates import candidates

from .drafts import INF, KINDS, budgets, check_tree, drafts, head, ragged, same
from .no_sync import no_host_sync

FORMS: tuple[Form, ...] = ("reference", "vectorised", "kernel")
SIZES = (1, 7, 63, 64, 65, 130)
CPU = torch.device("cpu")
QUICK = settings(max_examples=120, deadline=None)
# A node takes milliseconds in the interpreter.
SLOW = settings(max_examples=25, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def poison() -> Iterator[None]:
    """Outputs start as values that no node gets, so that an unwritten slot is seen."""
    plain = kernel.outputs

    def poisoned(*args: Any) -> Any:
        return tuple(out.fill_(-77) for out in plain(*args))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "outputs", poisoned)
        yield


@st.composite
def cases(draw: st.DrawFn, sizes: tuple[int, ...], requests: int) -> dict[str, Any]:
    """Arguments of `drafts` and of `build`."""
    nodes = draw(st.sampled_from(sizes))
    batch = draw(st.integers(1, requests))
    shape = (batch, draw(st.integers(1, 9)), draw(st.sampled_from((1, 2, 3, 5, 8, 64))))
    return {
        "drafts": {
            "seed": draw(st.integers(0, 2**16)),
            "kind": draw(st.sampled_from(KINDS)),
            "shape": shape,
            "repeats": draw(st.booleans()),
        },
        "nodes": nodes,
        "budgets": draw(budgets(batch, nodes)),
        "spine_first": draw(st.booleans()),
        "max_siblings": draw(st.none() | st.integers(1, 4)),
    }


def grown(case: dict[str, Any], form: Form, device: torch.device) -> Tree:
    ids, logp = drafts(**case["drafts"], device=device)
    return build(
        ids,
        logp,
        case["nodes"],
        budgets=ragged(case["budgets"], device),
        spine_first=case["spine_first"],
        max_siblings=case["max_siblings"],
        form=form,
    )


@QUICK
@given(case=cases(SIZES, requests=4))
def test_vectorised_equals_reference(case: dict[str, Any], device: torch.device) -> None:
    tree = grown(case, "vectorised", device)
    check_tree(tree, case["nodes"])
    assert same(tree, grown(case, "reference", device))


@SLOW
@given(case=cases((1, 7, 16, 33), requests=2))
def test_kernel_equals_reference(case: dict[str, Any], device: torch.device) -> None:
    tree = grown(case, "kernel", device)
    check_tree(tree, case["nodes"])
    assert same(tree, grown(case, "reference", device))


@pytest.mark.parametrize("form", ["vectorised", "kernel"])
@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("kind", ["spread", "ties"])
def test_every_size(kind: str, nodes: int, form: Form, device: torch.device) -> None:
    ids, logp = drafts(nodes, kind, (2, 8, 16), repeats=False, device=device)
    limits = ragged([nodes, nodes // 2], device)
    tree = build(ids, logp, nodes, budgets=limits, form=form)
    check_tree(tree, nodes)
    assert tree.count.tolist() == [nodes, nodes // 2]
    assert same(tree, build(ids, logp, nodes, budgets=limits, form="reference"))


def every_path(
    ids: torch.Tensor, logp: torch.Tensor, most: int | None
) -> list[tuple[list[float], tuple[int, ...]]]:
    """Costs of all nodes on the path, deepest first, and its tokens, in the tie rule's order.

    The order needs no tree: the parent that comes first is the one with the lower cost, or else
    the one whose own parent comes first, up to the ranks from the root down.
    """
    ranked = []
    for tokens, weights in zip(ids.tolist(), logp.tolist(), strict=True):
        first = [k for k in range(len(tokens)) if tokens.index(tokens[k]) == k]
        usable = [(-min(weights[k], 0.0), k, tokens[k]) for k in first if weights[k] > -INF]
        ranked.append([(cost, token) for cost, _, token in sorted(usable)][:most])
    found = []
    for depth in range(1, len(ranked) + 1):
        for ranks in itertools.product(*(range(len(options)) for options in ranked[:depth])):
            cost = torch.zeros((), dtype=torch.float32)
            costs: list[float] = []
            for position, rank in enumerate(ranks):
                cost = cost + torch.tensor(ranked[position][rank][0])
                costs.insert(0, float(cost))
            tokens = tuple(ranked[p][rank][1] for p, rank in enumerate(ranks))
            if costs[0] < INF:
                found.append(((costs[0], depth, costs[1:], ranks), costs, tokens))
    return [(costs, tokens) for _, costs, tokens in sorted(found)]


def paths_of(tree: Tree, request: int) -> list[tuple[int, ...]]:
    """Tokens from the root to each real node, in the tree's order."""
    paths: list[tuple[int, ...]] = [()]
    for node in range(int(tree.count[request])):
        parent = int(tree.parents[request, node])
        paths.append((*paths[parent], int(tree.tokens[request, node])))
    return paths[1:]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    kind=st.sampled_from(KINDS),
    depth=st.integers(1, 4),
    width=st.integers(1, 4),
    repeats=st.booleans(),
    most=st.none() | st.integers(1, 3),
    nodes=st.integers(1, 40),
)
def test_best_of_all_paths(
    seed: int, kind: str, depth: int, width: int, repeats: bool, most: int | None, nodes: int
) -> None:
    ids, logp = drafts(seed, kind, (1, depth, width), repeats=repeats, device=CPU)
    expected = every_path(ids[0], logp[0], most)
    forms: tuple[Form, ...] = ("reference", "vectorised")
    for form in forms:
        tree = build(ids, logp, nodes, max_siblings=most, form=form)
        assert paths_of(tree, 0) == [tokens for _, tokens in expected[:nodes]]
        spined = build(ids, logp, nodes, max_siblings=most, spine_first=True, form=form)
        spine = spine_of(expected)
        rest = [tokens for _, tokens in expected if tokens not in spine]
        assert paths_of(spined, 0) == [*spine, *rest][:nodes]


def spine_of(expected: list[tuple[list[float], tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """The first path of each depth in the tie rule's order."""
    first: dict[int, tuple[int, ...]] = {}
    for _, tokens in expected:
        first.setdefault(len(tokens), tokens)
    return [first[depth] for depth in sorted(first)]


@pytest.mark.parametrize("spine_first", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_prefix_is_the_best_tree_of_its_size(
    kind: str, form: Form, spine_first: bool, device: torch.device
) -> None:
    ids, logp = drafts(3, kind, (2, 6, 5), repeats=False, device=device)
    whole = build(ids, logp, 30, spine_first=spine_first, form=form)
    for nodes in (1, 2, 5, 6, 7, 29):
        part = build(ids, logp, nodes, spine_first=spine_first, form=form)
        assert same(part, head(whole, nodes))


@pytest.mark.parametrize("form", FORMS)
def test_one_candidate_makes_a_chain(form: Form, device: torch.device) -> None:
    ids, logp = drafts(0, "spread", (1, 9, 1), repeats=False, device=device)
    tree = build(ids, logp, 12, form=form)
    assert tree.parents.tolist() == [[*range(9), 0, 0, 0]]
    assert tree.count.tolist() == [9]


@pytest.mark.parametrize("form", FORMS)
def test_one_position_makes_a_star(form: Form, device: torch.device) -> None:
    ids, logp = drafts(0, "spread", (1, 1, 9), repeats=False, device=device)
    tree = build(ids, logp, 12, form=form)
    order = logp[0, 0].argsort(descending=True)
    assert tree.tokens.tolist() == [[*ids[0, 0, order].tolist(), -1, -1, -1]]
    assert tree.parents.tolist() == [[0] * 12]


@pytest.mark.parametrize("form", FORMS)
def test_equal_weights_go_by_depth_parent_and_rank(form: Form, device: torch.device) -> None:
    ids = torch.tensor([[[10, 11], [20, 21], [30, 31]]], dtype=torch.int32, device=device)
    tree = build(ids, torch.zeros(1, 3, 2, device=device), 10, form=form)
    assert tree.tokens.tolist() == [[10, 11, 20, 21, 20, 21, 30, 31, 30, 31]]
    assert tree.parents.tolist() == [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]]


@pytest.mark.parametrize("form", FORMS)
def test_a_lower_cost_that_rounds_away_still_comes_first(form: Form, device: torch.device) -> None:
    # 1 + 2**-30 is 1 in float32: equal costs below parents of different cost.
    ids = torch.tensor([[[5, 6], [7, 8]]], dtype=torch.int32, device=device)
    logp = torch.tensor([[[-(2.0**-30), 0.0], [-1.0, -INF]]], device=device)
    tree = build(ids, logp, 6, form=form)
    assert tree.tokens.tolist() == [[6, 5, 7, 7, -1, -1]]
    assert tree.parents.tolist() == [[0, 0, 1, 2, 0, 0]]


@pytest.mark.parametrize("form", FORMS)
def test_spine_leads_and_is_cut_by_the_budget(form: Form, device: torch.device) -> None:
    ids = torch.tensor([[[1, 2], [3, 4], [5, 6]]] * 2, dtype=torch.int32, device=device)
    logp = torch.tensor([[[-1.0, -1.1], [-9.0, -9.5], [-9.0, -9.1]]] * 2, device=device)
    limits = ragged([5, 2], device)
    tree = build(ids, logp, 5, budgets=limits, spine_first=True, form=form)
    assert tree.tokens.tolist() == [[1, 3, 5, 2, 3], [1, 3, -1, -1, -1]]
    assert tree.parents.tolist() == [[0, 1, 2, 0, 4], [0, 1, 0, 0, 0]]
    assert build(ids, logp, 5, form=form).tokens[0].tolist() == [1, 2, 3, 3, 4]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_impossible_is_never_chosen(form: Form, device: torch.device) -> None:
    ids, _ = drafts(0, "spread", (3, 4, 3), repeats=False, device=device)
    logp = torch.full((3, 4, 3), -INF, device=device)
    logp[1] = float("nan")
    logp[2, 0, 1] = -2.0
    logp[2, 1, 1] = 7.0
    tree = build(ids, logp, 8, spine_first=True, form=form)
    check_tree(tree, 8)
    assert tree.count.tolist() == [0, 0, 2]
    assert tree.parents[2].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("form", ["reference", "vectorised"])
def test_a_sum_that_overflows_is_impossible(form: Form) -> None:
    ids, logp = torch.zeros(1, 4, 1, dtype=torch.int32), torch.full((1, 4, 1), -3e38)
    assert build(ids, logp, 4, form=form).count.tolist() == [1]


@pytest.mark.parametrize("form", FORMS)
def test_batch_without_requests_positions_or_nodes(form: Form, device: torch.device) -> None:
    for shape, nodes in (((0, 3, 2), 4), ((2, 0, 2), 4), ((2, 3, 0), 4), ((2, 3, 2), 0)):
        ids = torch.zeros(shape, dtype=torch.int32, device=device)
        tree = build(ids, torch.zeros(shape, device=device), nodes, form=form)
        check_tree(tree, nodes)
        assert tree.count.tolist() == [0] * shape[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spine_first", [False, True])
@pytest.mark.parametrize("kind", ["spread", "ties", "certain"])
def test_ranked_candidates_are_taken_as_they_are(
    kind: str, spine_first: bool, form: Form, device: torch.device
) -> None:
    ids, logp = drafts(6, kind, (2, 5, 7), repeats=False, device=device)
    logp[0, 3, 2:] = logp[1, 4] = -INF
    logp, order = logp.sort(dim=-1, descending=True, stable=True)
    ids = ids.gather(-1, order)
    tree = build(ids, logp, 25, spine_first=spine_first, max_siblings=3, ranked=True, form=form)
    check_tree(tree, 25)
    assert same(
        tree, build(ids, logp, 25, spine_first=spine_first, max_siblings=3, form="reference")
    )


def test_candidates_need_no_ranking(device: torch.device) -> None:
    logits = torch.randn(2, 4, 50, generator=torch.Generator().manual_seed(0)).to(device)
    logits[0, 1, 3], logits[0, 2] = float("nan"), -INF
    logits[1, 0, :6] = 2.0
    ids, logp = candidates(logits, 8)
    assert same(build(ids, logp, 40, ranked=True), build(ids, logp, 40, form="reference"))


@pytest.mark.parametrize("form", FORMS)
def test_long_ids_give_the_same_tree(form: Form, device: torch.device) -> None:
    ids, logp = drafts(1, "ties", (2, 3, 4), repeats=True, device=device)
    assert same(build(ids.long(), logp, 9, form=form), build(ids, logp, 9, form=form))


@pytest.mark.parametrize("repeats", [False, True])
def test_both_ways_to_find_repeated_ids(repeats: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, _ = drafts(5, "spread", (3, 4, 9), repeats=repeats, device=CPU)
    compared = vectorised.repeated(ids)
    monkeypatch.setattr(vectorised, "FEW", 0)
    assert torch.equal(vectorised.repeated(ids), compared)
    assert bool(compared.any()) == repeats


def test_auto_gives_the_same_tree_on_both_sides_of_its_choice(device: torch.device) -> None:
    ids, logp = drafts(2, "ties", (3, 5, 6), repeats=True, device=device)
    for requests, nodes in ((1, 24), (3, 8), (3, 9), (1, 25)):
        part = ids[:requests], logp[:requests], nodes
        assert same(build(*part), build(*part, form="reference"))


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    ids, logp = drafts(4, "hostile", (3, 7, 16), repeats=True, device=device)
    limits = ragged([130, 0, 5], device)
    # Tables are made once, on the host.
    build(ids, logp, 130, form="vectorised")
    with no_host_sync():
        build(ids, logp, 130, form="vectorised")
        build(ids, logp, 130, budgets=limits, spine_first=True, max_siblings=16, form="vectorised")


def test_pairs_of_a_level() -> None:
    """Three nodes at depth 2: two parents of one child would need four rows."""
    assert pairs(3, 2, ranks=5, above=3) == [(0, 0), (0, 1)]
    assert pairs(4, 2, ranks=5, above=4) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert pairs(4, 3, ranks=5, above=3) == [(0, 0), (0, 1)]


def test_columns_begin_with_what_can_be_a_parent() -> None:
    level = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert columns(level, 2) == ([0, 1, 3, 2, 4], 3)
    assert columns(level, 0) == ([0, 1, 2, 3, 4], 0)


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


IDS = torch.zeros((2, 3, 4), dtype=torch.int32)
LOGP = torch.zeros((2, 3, 4))
GIVEN: dict[str, Any] = {"ids": IDS, "logp": LOGP, "budget": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": IDS.float()}, "ids: expected dtype"),
        ({"ids": IDS[0]}, r"ids: expected shape \[any, any, any\]"),
        ({"ids": IDS.mT}, "ids: expected a contiguous tensor"),
        ({"ids": [[[1]]]}, "ids: expected a tensor, found list"),
        ({"logp": LOGP.half()}, "logp: expected dtype"),
        ({"logp": LOGP[:1]}, r"logp: expected shape \[2, 3, 4\], found \[1, 3, 4\]"),
        ({"logp": LOGP.to("meta")}, "logp: expected device cpu, found meta"),
        ({"budget": -1}, "budget: expected 0 to 1024, found -1"),
        ({"budget": 1025}, "budget: expected 0 to 1024, found 1025"),
        ({"budgets": torch.zeros(3, dtype=torch.int32)}, r"budgets: expected shape \[2\]"),
        ({"budgets": torch.zeros(2, dtype=torch.int64)}, "budgets: expected dtype"),
        ({"max_siblings": 0}, "max_siblings: expected at least 1, found 0"),
        ({"form": "heap"}, "form: expected one of auto"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**(GIVEN | change))


def test_too_many_candidates() -> None:
    ids = torch.zeros((1, 1, 1025), dtype=torch.int32)
    with pytest.raises(ValueError, match="ids: expected at most 1024 candidates"):
        build(ids, torch.zeros(1, 1, 1025), 4)
