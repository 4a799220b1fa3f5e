"""The walk in every form against its loops, on every shape of tree, padded and ragged."""

import itertools
import random
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.walk import Form, Walk, kernel, row_starts, walk, walk_logits

from . import trees
from .no_sync import no_host_sync
from .trees import Shape

QUICK = settings(max_examples=150, deadline=None)
# The interpreter needs a tenth of a second per program.
SLOW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FORMS: tuple[Form, ...] = ("reference", "vectorised", "kernel")
JUNK = 3


@pytest.fixture(autouse=True, scope="module")
def poison() -> Iterator[None]:
    """Outputs start as values that no walk gives, so that an unwritten slot is seen."""
    plain = kernel.outputs

    def poisoned(*args: Any) -> Any:
        return tuple(out.fill_(-77) for out in plain(*args))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "outputs", poisoned)
        yield


def wanted_along(shape: Shape, row: int, seed: int) -> list[int]:
    """Target tokens of a shape's rows that lead to `row`, chance matches elsewhere."""
    rng = random.Random(seed)
    wanted = [rng.randrange(trees.VOCABULARY + 1) for _ in range(shape.count + 1)]
    for parent, child in itertools.pairwise(shape.path(row)):
        wanted[parent] = shape.tokens[child - 1]
    return wanted


@st.composite
def walks(draw: st.DrawFn, limit: int = 130) -> tuple[list[Shape], int, list[list[int]]]:
    shapes, width = draw(trees.batches(limit=limit, duplicates=True))
    seed = draw(st.integers(0, 2**16))
    ends = [draw(st.integers(0, shape.count)) for shape in shapes]
    wanted = [
        wanted_along(s, e, seed + i) for i, (s, e) in enumerate(zip(shapes, ends, strict=True))
    ]
    return shapes, width, wanted


def arguments(
    shapes: list[Shape], width: int, wanted: list[list[int]], device: torch.device, dtype: Any
) -> tuple[torch.Tensor, ...]:
    """Target, tokens, parents and count; padding holds tokens that would match."""
    tree = trees.batch(shapes, width, device)
    target = torch.tensor([[*line, *[JUNK] * (width + 1 - len(line))] for line in wanted])
    padding = torch.arange(width, device=device) >= tree.count[:, None]
    tokens = torch.where(padding, JUNK, tree.tokens)
    return target.to(device, dtype), tokens, tree.parents, tree.count


def assert_same(found: Walk, expected: Walk) -> None:
    for name, one, other in zip(Walk._fields, found, expected, strict=True):
        assert one.dtype == other.dtype, name
        assert one.tolist() == other.tolist(), name


def check(case: tuple[list[Shape], int, list[list[int]]], form: Form, device: torch.device) -> None:
    shapes, width, wanted = case
    for dtype in (torch.int32, torch.int64):
        target, *tree = arguments(shapes, width, wanted, device, dtype)
        expected = walk(target, *tree, form="reference")
        assert_same(walk(target, *tree, form=form), expected)
        flat = torch.tensor([JUNK, *[token for line in wanted for token in line]])
        starts = row_starts(tree[2]) + 1
        assert_same(walk(flat.to(device, dtype), *tree, row_start=starts, form=form), expected)


@QUICK
@given(case=walks())
def test_vectorised_equals_reference(
    case: tuple[list[Shape], int, list[list[int]]], device: torch.device
) -> None:
    check(case, "vectorised", device)


@SLOW
@given(case=walks())
def test_kernel_equals_reference(
    case: tuple[list[Shape], int, list[list[int]]], device: torch.device
) -> None:
    check(case, "kernel", device)


@QUICK
@given(case=walks())
def test_walk_by_its_definition(case: tuple[list[Shape], int, list[list[int]]]) -> None:
    """Properties that hold for the result itself, whatever the reference does."""
    shapes, width, wanted = case
    result = walk(*arguments(shapes, width, wanted, torch.device("cpu"), torch.int64))
    for shape, line, perm, accepted, bonus, last in zip(
        shapes, wanted, *[out.tolist() for out in result], strict=True
    ):
        assert sorted(perm) == list(range(width + 1))
        path, rest = perm[: accepted + 1], perm[accepted + 1 :]
        assert path == shape.path(last)
        assert rest == sorted(rest)
        assert bonus == line[last]
        assert [shape.tokens[row - 1] for row in path[1:]] == [line[row] for row in path[:-1]]
        children = [j for j in range(shape.count) if shape.parents[j] == last]
        assert bonus not in [shape.tokens[j] for j in children]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", trees.WIDTHS)
def test_whole_chain_is_accepted(width: int, form: Form, device: torch.device) -> None:
    shape = trees.chain(width)
    case = arguments([shape], width, [[*shape.tokens, 9]], device, torch.int32)
    result = walk(*case, form=form)
    assert result.perm.tolist() == [list(range(width + 1))]
    assert [result.accepted.item(), result.bonus.item(), result.bonus_row.item()] == [
        width,
        9,
        width,
    ]


@pytest.mark.parametrize("form", FORMS)
def test_nothing_accepted_and_nothing_drafted(form: Form, device: torch.device) -> None:
    shapes = [trees.star(7), trees.empty()]
    result = walk(*arguments(shapes, 7, [[8] * 8, [2]], device, torch.int64), form=form)
    assert result.perm.tolist() == [list(range(8))] * 2
    assert result.accepted.tolist() == [0, 0]
    assert result.bonus.tolist() == [8, 2]
    assert result.bonus_row.tolist() == [0, 0]


@pytest.mark.parametrize("form", FORMS)
def test_lowest_of_duplicate_siblings_is_followed(form: Form, device: torch.device) -> None:
    shape = Shape(parents=(0, 0, 1, 2), tokens=(4, 4, 1, 2))
    result = walk(*arguments([shape], 4, [[4, 2, 2, 0, 0]], device, torch.int32), form=form)
    assert result.perm.tolist() == [[0, 1, 2, 3, 4]]
    assert result.accepted.tolist() == [1]
    assert result.bonus.tolist() == [2]


@pytest.mark.parametrize("form", FORMS)
def test_batch_without_requests(form: Form, device: torch.device) -> None:
    tokens = torch.empty((0, 7), dtype=torch.int32, device=device)
    target = torch.empty((0, 8), dtype=torch.int64, device=device)
    result = walk(target, tokens, tokens, tokens[:, 0].contiguous(), form=form)
    assert [list(out.shape) for out in result] == [[0, 8], [0], [0], [0]]


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    shapes = [trees.random_tree(64, 1), trees.empty(), trees.chain(20)]
    wanted = [wanted_along(shape, shape.count, 2) for shape in shapes]
    target, *tree = arguments(shapes, 64, wanted, device, torch.int64)
    logits = torch.zeros((3, 65, 11), device=device)
    with no_host_sync():
        walk(target, *tree, form="vectorised")
        walk(target.view(-1), *tree, row_start=row_starts(tree[2]), form="vectorised")
        walk_logits(logits, *tree, form="vectorised")


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


def logits_for(wanted: list[int], vocabulary: int, dtype: Any, seed: int) -> torch.Tensor:
    """Logits whose greedy tokens are `wanted`, with an equal logit at every higher index's half."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(-4, 4, (len(wanted), vocabulary), generator=generator).to(dtype)
    for line, token in zip(logits, wanted, strict=True):
        line[token] = 5
        line[token + 1 :: 2] = 5
    return logits


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("vocabulary", [7, 64, 5001])
def test_walk_of_logits(form: Form, dtype: Any, vocabulary: int, device: torch.device) -> None:
    shapes = [
        trees.random_tree(7, 5),
        trees.empty(),
        trees.chain(5),
        trees.duplicate_siblings(7, 3),
    ]
    wanted = [wanted_along(shape, shape.count, 7) for shape in shapes]
    target, *tree = arguments(shapes, 7, wanted, device, torch.int32)
    expected = walk(target, *tree, form="reference")
    flat = logits_for([t for line in wanted for t in line], vocabulary, dtype, 3).to(device)
    # A row of a wider buffer: strided between rows.
    wide = torch.full((flat.shape[0], vocabulary + 3), 99.0, dtype=dtype, device=device)
    wide[:, :vocabulary] = flat
    starts = row_starts(tree[2])
    ragged = walk_logits(wide[:, :vocabulary], *tree, row_start=starts, form=form)
    assert_same(ragged, expected)
    padded = logits_for([t for line in target.tolist() for t in line], vocabulary, dtype, 4)
    assert_same(walk_logits(padded.view(4, 8, -1).to(device), *tree, form=form), expected)


@pytest.mark.parametrize("form", FORMS)
def test_greedy_ties_and_special_values(form: Form, device: torch.device) -> None:
    inf, nan = float("inf"), float("nan")
    lines = [
        [-inf, -inf, -inf],
        [1.0, 2.0, 2.0],
        [0.0, nan, 3.0],
        [-inf, inf, inf],
        [-1.0, -0.0, 0.0],
    ]
    logits = torch.tensor(lines, device=device)[:, None, :].contiguous()
    none = torch.empty((5, 0), dtype=torch.int32, device=device)
    count = torch.zeros(5, dtype=torch.int32, device=device)
    assert walk_logits(logits, none, none, count, form=form).bonus.tolist() == [0, 1, 1, 1, 1]


def wrong(**change: Any) -> dict[str, Any]:
    good: dict[str, Any] = {
        "target": torch.zeros((2, 8), dtype=torch.int64),
        "tokens": torch.zeros((2, 7), dtype=torch.int32),
        "parents": torch.zeros((2, 7), dtype=torch.int32),
        "count": torch.zeros(2, dtype=torch.int32),
    }
    return good | change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": torch.zeros((2, 7), dtype=torch.int64)}, r"target: expected shape \[2, 8\]"),
        ({"target": torch.zeros((2, 8))}, "target: expected dtype"),
        ({"target": torch.zeros((8, 2), dtype=torch.int64).T}, "target: expected a contiguous"),
        ({"tokens": torch.zeros((2, 7), dtype=torch.int64)}, "tokens: expected dtype"),
        ({"parents": torch.zeros((2, 6), dtype=torch.int32)}, "parents: expected shape"),
        ({"count": torch.zeros(3, dtype=torch.int32)}, "count: expected shape"),
        ({"count": [1, 2]}, "count: expected a tensor, found list"),
        ({"row_start": torch.zeros(2, dtype=torch.int32)}, r"target: expected shape \[any\]"),
        ({"row_start": torch.zeros(5, dtype=torch.int32)}, "row_start: expected 2 or 3 starts"),
        ({"row_start": torch.zeros(2)}, "row_start: expected dtype"),
        (
            {
                "row_start": torch.zeros(2, dtype=torch.int32),
                "target": torch.zeros(1, dtype=torch.int32),
            },
            "target: expected at least one row",
        ),
        ({"form": "triton"}, "form: expected one of auto"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        walk(**wrong(**change))


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (torch.zeros((2, 8)), "logits: expected shape"),
        (torch.zeros((2, 8, 4), dtype=torch.int32), "logits: expected dtype"),
        (torch.zeros((2, 8, 0)), "logits: expected at least one token"),
        (torch.zeros((2, 4, 8)).transpose(1, 2), "logits: expected a contiguous"),
    ],
)
def test_wrong_logits(logits: torch.Tensor, message: str) -> None:
    good = wrong()
    good.pop("target")
    with pytest.raises(ValueError, match=message):
        walk_logits(logits, **good)
    starts = torch.zeros(2, dtype=torch.int32)
    with pytest.raises(ValueError, match="logits: expected last stride 1"):
        walk_logits(torch.zeros((4, 16)).T, **good, row_start=starts)
