"""Committed caches in every form and layout, bit for bit, against the loops and the definition."""

import itertools
import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.commit import LAYOUTS, CommitPlan, Form, commit, commit_rows

from . import trees
from .no_sync import no_host_sync
from .trees import Shape

QUICK = settings(max_examples=100, deadline=None)
# A program takes a few hundredths of a second in the interpreter.
SLOW = settings(max_examples=40, deadline=None)
FORMS: tuple[Form, ...] = ("reference", "vectorised", "kernel")
DTYPES = (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float64)
HEADS, DIM = 2, 3


@dataclass(frozen=True)
class Step:
    """One step of a batch: padded to `width + 1` rows per request, or ragged with `row_start`."""

    slots: torch.Tensor
    perm: torch.Tensor
    accepted: torch.Tensor
    row_start: torch.Tensor | None
    blocks: int
    # Source and destination slot of every accepted row, for checks by definition.
    pairs: list[tuple[int, int]]

    def arguments(self, device: torch.device) -> tuple[tuple[torch.Tensor, ...], dict[str, Any]]:
        start = None if self.row_start is None else self.row_start.to(device)
        tensors = (self.slots.to(device), self.perm.to(device), self.accepted.to(device))
        return tensors, {"row_start": start}


def step(
    shapes: list[Shape], ends: list[int], width: int, *, block: int, ragged: bool, seed: int
) -> Step:
    """A step in which request `r` accepts the path to row `ends[r]`; slots lie anywhere."""
    rng = random.Random(seed)
    total = sum(shape.count + 1 for shape in shapes)
    blocks = total // block + 2
    # Contiguous slots as an engine has them on even seeds, scattered ones on odd seeds.
    free = list(range(blocks * block))
    if seed % 2:
        rng.shuffle(free)
    lines, perm, pairs = [], [], []
    for shape, end in zip(shapes, ends, strict=True):
        mine, free = free[: shape.count + 1], free[shape.count + 1 :]
        path = shape.path(end)
        rest = [row for row in range(width + 1) if row not in path]
        perm.append([*path, *rest])
        pairs += [(mine[row], mine[place]) for place, row in enumerate(path)]
        lines.append(mine)
    starts = list(itertools.accumulate([len(line) for line in lines], initial=0))
    padded = [[*line, *[-1] * (width + 1 - len(line))] for line in lines]
    slots = [slot for line in lines for slot in line] if ragged else padded
    return Step(
        slots=torch.tensor(slots, dtype=torch.int64),
        perm=torch.tensor(perm, dtype=torch.int32),
        accepted=torch.tensor(
            [len(s.path(e)) - 1 for s, e in zip(shapes, ends, strict=True)]
        ).int(),
        row_start=torch.tensor(starts, dtype=torch.int32) if ragged else None,
        blocks=blocks,
        pairs=pairs,
    )


@st.composite
def steps(draw: st.DrawFn, limit: int = 130) -> tuple[Step, int, int]:
    """A step, the block size and the head size: odd ones move narrow words, the others wide."""
    shapes, width = draw(trees.batches(limit=limit, requests=3))
    ends = [draw(st.integers(0, shape.count)) for shape in shapes]
    block = draw(st.sampled_from([1, 3, 16]))
    ragged, seed = draw(st.booleans()), draw(st.integers(0, 2**16))
    return (
        step(shapes, ends, width, block=block, ragged=ragged, seed=seed),
        block,
        draw(st.sampled_from([3, 4])),
    )


def shape_of(layout: str, blocks: int, block: int, dim: int) -> tuple[int, ...]:
    return {
        "halves_first": (2, blocks, block, HEADS, dim),
        "halves_second": (blocks, 2, block, HEADS, dim),
        "heads_first": (blocks, HEADS, block, 2 * dim),
    }[layout]


def noise(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Random bits, NaN and infinities among them."""
    size = torch.empty((), dtype=dtype).element_size()
    bits = torch.randint(0, 256, (*shape[:-1], shape[-1] * size), dtype=torch.uint8)
    return bits.view(dtype).to(device)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def check(
    case: tuple[Step, int, int], layout: str, dtype: torch.dtype, form: Form, device: Any
) -> None:
    one, block, dim = case
    caches = [noise(shape_of(layout, one.blocks, block, dim), dtype, device) for _ in range(2)]
    expected = [cache.clone() for cache in caches]
    for cache in expected:
        move_by_definition(LAYOUTS[layout][1](cache), one.pairs, block)
    tensors, options = one.arguments(device)
    plan = CommitPlan.of_caches(caches, layout)
    assert len(plan.groups) == 1
    commit(plan, *tensors, **options, form=form)
    for found, wanted in zip(caches, expected, strict=True):
        assert torch.equal(bits(found), bits(wanted))


def move_by_definition(views: list[torch.Tensor], pairs: list[tuple[int, int]], block: int) -> None:
    for view in views:
        before = view.clone()
        for source, to in pairs:
            view[to // block, to % block] = before[source // block, source % block]


@QUICK
@given(case=steps(), layout=st.sampled_from(sorted(LAYOUTS)), dtype=st.sampled_from(DTYPES))
@pytest.mark.parametrize("form", ["reference", "vectorised"])
def test_torch_forms_move_bit_for_bit(
    form: Form, case: tuple[Step, int, int], layout: str, dtype: torch.dtype, device: torch.device
) -> None:
    check(case, layout, dtype, form, device)


@SLOW
@given(case=steps(), layout=st.sampled_from(sorted(LAYOUTS)), dtype=st.sampled_from(DTYPES))
def test_kernel_moves_bit_for_bit(
    case: tuple[Step, int, int], layout: str, dtype: torch.dtype, device: torch.device
) -> None:
    check(case, layout, dtype, "kernel", device)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_destination_is_another_rows_source(layout: str, form: Form, device: torch.device) -> None:
    """The path 0, 2, 4, … reads row 2 for place 1 and writes it as place 2."""
    shape = trees.comb(40)
    one = step([shape], [40], 40, block=3, ragged=False, seed=0)
    sources, destinations = ({pair[side] for pair in one.pairs[1:]} for side in (0, 1))
    assert len(sources & destinations) == 10
    check((one, 3, DIM), layout, torch.float32, form, device)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ends", [[7, 7], [0, 0]], ids=["whole tree", "nothing"])
def test_a_chain_in_place_moves_nothing(ends: list[int], form: Form, device: torch.device) -> None:
    one = step([trees.chain(7), trees.chain(7)], ends, 7, block=4, ragged=True, seed=1)
    cache = noise((2, one.blocks, 4, HEADS, DIM), torch.float16, device)
    before = cache.clone()
    tensors, options = one.arguments(device)
    commit(CommitPlan.of_caches([cache], "halves_first"), *tensors, **options, form=form)
    assert torch.equal(bits(cache), bits(before))


@pytest.mark.parametrize("form", FORMS)
def test_padding_slots_are_skipped(form: Form, device: torch.device) -> None:
    cache = torch.arange(12.0, device=device).reshape(6, 2, 1)
    plan = CommitPlan.of_views([cache])
    slots = torch.tensor([[4, -1, 6, 7], [8, 9, -1, -1], [-1, -1, -1, -1]], device=device)
    perm = torch.tensor([[0, 2, 3, 1], [0, 2, 3, 1], [0, 2, 3, 1]], device=device).int()
    accepted = torch.tensor([2, 1, 2], device=device).int()
    commit(plan, slots, perm, accepted, form=form)
    # Request 0 has no slot for place 1, request 1 none for its source, request 2 none at all.
    assert cache.flatten().tolist() == [0, 1, 2, 3, 4, 5, 7, 7, 8, 9, 10, 11]
    commit(plan, slots[2:], perm[2:], accepted[2:], form=form)
    assert cache.flatten().tolist() == [0, 1, 2, 3, 4, 5, 7, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("form", FORMS)
def test_layers_of_different_geometry(form: Form, device: torch.device) -> None:
    """Full caches, a latent cache, a slice of a wider buffer and one in reverse order of axes."""
    shapes = [trees.random_tree(15, 2), trees.star(3)]
    one = step(shapes, [15, 3], 15, block=4, ragged=True, seed=3)
    size = one.blocks
    wide = noise((size, 4, HEADS, 2 * DIM + 1), torch.float32, device)
    turned = noise((DIM, HEADS, 4, size), torch.int64, device)
    buffers = [
        noise((size, 4, HEADS, DIM), torch.bfloat16, device),
        noise((size + 3, 4, HEADS, DIM), torch.float16, device),
        noise((size, 4, 700), torch.float8_e5m2, device),
        wide,
        turned,
    ]
    views = [*buffers[:3], wide[..., 1 : 2 * DIM : 2], turned.permute(3, 2, 1, 0)]
    expected = [buffer.clone() for buffer in buffers]
    wanted = [*expected[:3], expected[3][..., 1 : 2 * DIM : 2], expected[4].permute(3, 2, 1, 0)]
    move_by_definition(wanted, one.pairs, 4)
    plan = CommitPlan.of_views(views)
    # The first two differ only in blocks and type, so one launch serves both.
    assert [len(group.views) for group in plan.groups] == [2, 1, 1, 1]
    tensors, options = one.arguments(device)
    commit(plan, *tensors, **options, form=form)
    for found, right in zip(buffers, expected, strict=True):
        assert torch.equal(bits(found), bits(right))


@pytest.mark.parametrize("form", FORMS)
def test_layers_that_share_a_cache_move_once(form: Form, device: torch.device) -> None:
    one = step([trees.comb(20)], [20], 20, block=4, ragged=False, seed=0)
    cache = noise((2, one.blocks, 4, HEADS, DIM), torch.float32, device)
    expected = cache.clone()
    move_by_definition([*expected], one.pairs, 4)
    tensors, _ = one.arguments(device)
    commit(CommitPlan.of_caches([cache, cache], "halves_first"), *tensors, form=form)
    assert torch.equal(bits(cache), bits(expected))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ragged", [False, True])
def test_rows_of_tensors(ragged: bool, form: Form, device: torch.device) -> None:
    shapes = [trees.comb(12), trees.empty(), trees.random_tree(9, 4)]
    one = step(shapes, [12, 0, 9], 12, block=1, ragged=ragged, seed=0)
    total = sum(shape.count + 1 for shape in shapes) + 2 if ragged else 3 * 13
    tensors = [
        noise((total, 1), torch.int64, device).flatten(),
        noise((total, 300), torch.float32, device)[:, :257],
        noise((total, 2, 5), torch.bfloat16, device),
    ]
    expected = [tensor.clone() for tensor in tensors]
    starts = [0, 13, 14] if ragged else [0, 13, 26]
    for tensor in expected:
        before = tensor.clone()
        for start, shape, end in zip(starts, shapes, [12, 0, 9], strict=True):
            for place, row in enumerate(shape.path(end)):
                tensor[start + place] = before[start + row]
    (_, perm, accepted), options = one.arguments(device)
    commit_rows(tensors, perm, accepted, **options, form=form)
    for found, wanted in zip(tensors, expected, strict=True):
        assert torch.equal(bits(found), bits(wanted))


@pytest.mark.parametrize("form", FORMS)
def test_offsets_beyond_32_bits(form: Form, device: torch.device) -> None:
    """A slot behind 2^31 elements; the pages between stay untouched, so they cost no memory."""
    cache = torch.empty((2**27 + 8, 1, 17), dtype=torch.int8, device=device)
    far = 2**27 + 3
    cache[far], cache[1] = 5, 6
    slots = torch.tensor([[0, 1, far]], device=device)
    perm = torch.tensor([[0, 2, 1]], dtype=torch.int32, device=device)
    accepted = torch.ones(1, dtype=torch.int32, device=device)
    commit(CommitPlan.of_views([cache]), slots, perm, accepted, form=form)
    assert cache[1].tolist() == cache[far].tolist() == [[5] * 17]


def test_longest_bounds_the_work_of_the_vectorised_form(device: torch.device) -> None:
    one = step([trees.comb(40)], [20], 40, block=4, ragged=False, seed=0)
    cache = noise((one.blocks, 4, HEADS, DIM), torch.float32, device)
    expected = cache.clone()
    move_by_definition([expected], one.pairs, 4)
    tensors, _ = one.arguments(device)
    commit(CommitPlan.of_views([cache]), *tensors, longest=10, form="vectorised")
    assert torch.equal(bits(cache), bits(expected))


@pytest.mark.parametrize("form", FORMS)
def test_batch_without_requests(form: Form, device: torch.device) -> None:
    cache = torch.zeros((2, 4, 3), device=device)
    slots = torch.empty((0, 8), dtype=torch.int64, device=device)
    nothing = (slots.int(), slots[:, 0].int())
    commit(CommitPlan.of_views([cache]), slots, *nothing, form=form)
    commit_rows([], *nothing, form=form)
    assert not cache.any()


def test_vectorised_does_not_wait_for_the_device(device: torch.device) -> None:
    shapes = [trees.comb(20), trees.empty()]
    one = step(shapes, [20, 0], 20, block=4, ragged=True, seed=1)
    plan = CommitPlan.of_caches(
        [noise((2, one.blocks, 4, HEADS, DIM), torch.float16, device)] * 2, "halves_first"
    )
    tensors, options = one.arguments(device)
    rows = [torch.zeros((22, 5), device=device)]
    with no_host_sync():
        commit(plan, *tensors, **options, form="vectorised")
        commit_rows(rows, *tensors[1:], **options, form="vectorised")


def test_forms_are_all_tested() -> None:
    assert {*FORMS, "auto"} == set(get_args(Form))


def test_a_thread_reads_what_it_writes() -> None:
    """No layout is converted, so one thread's order of reads and writes is the whole order."""
    command = [sys.executable, "-m", "ddtree.kernels.compile", "--unit", "commit"]
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, "--target", "gfx942", "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    shared = [line["shared"] for line in json.loads(done.stdout)["kernels"]]
    assert len(shared) >= 5
    assert set(shared) == {0}


SLOTS = torch.zeros((2, 8), dtype=torch.int64)
GOOD: dict[str, Any] = {
    "plan": CommitPlan.of_views([torch.zeros((4, 4, 3))]),
    "slots": SLOTS,
    "perm": SLOTS.int(),
    "accepted": torch.zeros(2, dtype=torch.int32),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slots": SLOTS.int()}, "slots: expected dtype"),
        ({"slots": SLOTS[:, :7]}, "slots: expected shape"),
        ({"slots": torch.zeros((8, 2), dtype=torch.int64).T}, "slots: expected a contiguous"),
        ({"perm": SLOTS}, "perm: expected dtype"),
        ({"accepted": torch.zeros(3, dtype=torch.int32)}, "accepted: expected shape"),
        ({"row_start": torch.zeros(2, dtype=torch.int32)}, r"slots: expected shape \[any\]"),
        ({"row_start": torch.zeros(4, dtype=torch.int32)}, "row_start: expected 2 or 3 starts"),
        ({"row_start": torch.zeros(2)}, "row_start: expected dtype"),
        ({"longest": 8}, "longest: expected 0 to 7, found 8"),
        ({"form": "triton"}, "form: expected one of auto"),
        (
            {"plan": CommitPlan.of_views([torch.zeros((4, 4, 3), device="meta")])},
            "plan: expected caches on cpu, found meta",
        ),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        commit(**{**GOOD, **change})


@pytest.mark.parametrize(
    ("caches", "layout", "message"),
    [
        ([torch.zeros((2, 4, 4, 2, 3))], "nhd", "layout: expected one of halves_first"),
        ([torch.zeros((4, 2, 4, 2, 3))], "halves_first", r"caches\[0\]: expected shape \[2, any"),
        ([torch.zeros((2, 3, 4, 2, 3))], "halves_second", r"caches\[0\]: expected shape \[any, 2"),
        ([torch.zeros((2, 4, 4, 2, 3))], "heads_first", r"caches\[0\]: expected shape"),
    ],
)
def test_wrong_caches(caches: list[torch.Tensor], layout: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CommitPlan.of_caches(caches, layout)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (torch.zeros(4), r"views\[0\]: expected 2 to 4 axes"),
        (torch.zeros((2, 0, 3)), r"views\[0\]: expected 2 to 4 axes, none of them empty"),
        (torch.zeros((2, 2, 3), dtype=torch.complex128), r"views\[0\]: expected elements of 1, 2"),
    ],
)
def test_wrong_views(view: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CommitPlan.of_views([view])


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros((2, 2, 2, 2)), r"tensors\[0\]: expected 1 to 3 axes"),
        (torch.zeros((15, 3)), r"tensors\[0\]: expected 16 rows, found 15"),
        (torch.zeros((16, 3), device="meta"), r"tensors\[0\]: expected device cpu"),
    ],
)
def test_wrong_rows(tensor: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        commit_rows([tensor], GOOD["perm"], GOOD["accepted"])
