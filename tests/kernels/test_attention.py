"""Tree attention in every form against float64, on every kind of batch."""

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddtree.kernels.tree.attention import kernel, tree_attention, vectorised

from . import trees
from .attention_batches import (
    DTYPES,
    LAYOUTS,
    Problem,
    Request,
    Sizes,
    chain,
    check,
    error,
    problem,
    run,
    tree,
)
from .trees import Shape

QUICK = settings(max_examples=40, deadline=None)
# The interpreter needs a good part of a second per batch.
SLOW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FORMS = ("padded", "each", "kernel")
WIDTHS = (1, 7, 63, 64, 65, 130)
MIXED = (
    tree(trees.random_tree(7, seed=1), 20),
    chain(1, 33),
    chain(0, 0),
    tree(trees.star(4), 0),
    chain(5, 3),
    tree(trees.empty(), 5),
)
PREFILL = (tree(trees.comb(8), 40), chain(140, 30), chain(140, 0))
SHAPES: dict[str, Callable[[int], Shape]] = {
    "chain": trees.chain,
    "star": trees.star,
    "comb": trees.comb,
    "random": lambda width: trees.random_tree(width, seed=width),
    "truncated": lambda width: trees.truncated(trees.random_tree(2 * width, seed=3), width),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dim", [16, 32, 64, 80, 128, 256])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mixed_batch(dtype: torch.dtype, dim: int, form: str, device: torch.device) -> None:
    sizes = Sizes(dtype=dtype, dim=dim, heads=4, kv_heads=2)
    check(problem(MIXED, sizes, device), form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", SHAPES)
def test_shapes(kind: str, width: int, form: str, device: torch.device) -> None:
    check(problem((tree(SHAPES[kind](width), 5),), Sizes(), device), form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (4, 1), (16, 2), (3, 1), (7, 1), (40, 1)])
def test_grouped_heads(heads: int, kv_heads: int, form: str, device: torch.device) -> None:
    batch = (tree(trees.random_tree(6, seed=2), 9), chain(1, 4))
    check(problem(batch, Sizes(heads=heads, kv_heads=kv_heads), device), form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [8, 16, 48, 128])
def test_contexts_around_a_block(block: int, form: str, device: torch.device) -> None:
    contexts = (0, 1, block - 1, block, block + 1)
    batch = tuple(tree(trees.random_tree(5, seed=c), c) for c in contexts)
    check(problem(batch, Sizes(block=block), device), form)


@pytest.mark.parametrize("form", FORMS)
def test_long_context(form: str, device: torch.device) -> None:
    batch = (tree(trees.random_tree(7, seed=4), 1501), chain(1, 700))
    check(problem(batch, Sizes(), device), form)


@pytest.mark.parametrize("form", FORMS)
def test_prefill_beside_trees(form: str, device: torch.device) -> None:
    check(problem(PREFILL, Sizes(heads=1), device), form)


@pytest.mark.parametrize("rows", [1, 32, 139])
def test_prefill_in_pieces(rows: int, device: torch.device, monkeypatch: Any) -> None:
    monkeypatch.setattr(vectorised, "CHAIN_ROWS", rows)
    check(problem(PREFILL, Sizes(heads=1), device), "each")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_layouts(dtype: torch.dtype, layout: str, form: str, device: torch.device) -> None:
    sizes = Sizes(dtype=dtype, dim=64, heads=4, kv_heads=2, layout=layout)
    check(problem(MIXED, sizes, device), form)


@pytest.mark.parametrize("splits", [1, 2, 5, 32])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_splits(
    dtype: torch.dtype, splits: int, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = torch.Tensor.new_empty

    def poisoned(self: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        fresh = plain(self, *args, **options)
        return fresh.fill_(float("nan")) if fresh.is_floating_point() else fresh

    # What an empty split leaves unwritten must not be read either.
    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    batch = (tree(trees.random_tree(9, seed=5), 150), *MIXED[:4])
    check(problem(batch, Sizes(dtype=dtype), device), "kernel", num_splits=splits)


@st.composite
def mixtures(draw: st.DrawFn, limit: int, most: int) -> tuple[tuple[Request, ...], Sizes, int]:
    context = st.integers(0, 70)
    one = st.one_of(
        st.builds(tree, trees.shapes(limit), context),
        st.builds(chain, st.integers(0, 1), context),
        st.builds(chain, st.integers(2, limit + 2), context),
    )
    kv_heads = draw(st.sampled_from([1, 2]))
    sizes = Sizes(
        dtype=draw(st.sampled_from(DTYPES)),
        dim=draw(st.sampled_from([32, 48])),
        heads=kv_heads * draw(st.integers(1, 3)),
        kv_heads=kv_heads,
        block=draw(st.sampled_from([8, 16])),
        layout=draw(st.sampled_from(sorted(LAYOUTS))),
    )
    return tuple(draw(st.lists(one, min_size=1, max_size=most))), sizes, draw(st.integers(0, 99))


@QUICK
@given(mixture=mixtures(limit=65, most=4))
def test_any_mixture_vectorised(mixture: Any, device: torch.device) -> None:
    batch, sizes, seed = mixture
    made = problem(batch, sizes, device, seed=seed)
    check(made, "padded")
    check(made, "each")


@SLOW
@given(mixture=mixtures(limit=65, most=3), splits=st.integers(1, 4))
def test_any_mixture_kernel(mixture: Any, splits: int, device: torch.device) -> None:
    batch, sizes, seed = mixture
    check(problem(batch, sizes, device, seed=seed), "kernel", num_splits=splits)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_lost_mask_is_noticed(dtype: torch.dtype, form: str, device: torch.device) -> None:
    made = problem((tree(trees.star(6), 30),), Sizes(dtype=dtype), device)
    assert error(made.ignoring_trees(), form) > 5 * made.allowed


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_needs_no_words(form: str, device: torch.device) -> None:
    made = problem((tree(trees.chain(70), 30), tree(trees.chain(3), 0)), Sizes(), device)
    assert torch.equal(run(made, form), run(made.ignoring_trees(), form))


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_no_request_are_zero(form: str, device: torch.device) -> None:
    made = problem((chain(3, 4), tree(trees.star(2), 4)), Sizes(), device, tail=70)
    assert run(made, form)[6:].count_nonzero() == 0
    only_tail = problem((chain(0, 0),), Sizes(), device, tail=5)
    assert run(only_tail, form).count_nonzero() == 0


@pytest.mark.parametrize("form", ["padded", "kernel"])
@pytest.mark.parametrize("is_chain", [False, True])
def test_sequence_shorter_than_its_rows(form: str, is_chain: bool, device: torch.device) -> None:
    made = problem((tree(trees.star(5), 0), chain(2, 8)), Sizes(), device)
    made = made.changed(
        seq_lens=torch.tensor([0, 10], dtype=torch.int32, device=device),
        is_chain=torch.tensor([is_chain, True], device=device),
    )
    result = run(made, form)
    assert result[:6].count_nonzero() == 0
    assert (result[6:].double() - made.exact[6:]).abs().max() <= made.allowed


@pytest.mark.parametrize("form", FORMS)
def test_a_row_sees_itself_without_its_bit(form: str, device: torch.device) -> None:
    made = problem((tree(trees.star(5), 12),), Sizes(), device)
    # Keep what a node sees of the root, drop what it sees of itself.
    check(made.changed(visible=made.tensors["visible"] & 1), form)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_beyond_32_bits(form: str, device: torch.device) -> None:
    made = problem((tree(trees.random_tree(5, seed=1), 9),), Sizes(dtype=torch.float16), device)
    far, moved = 2**31, {}
    for name in ("key_cache", "value_cache"):
        near = made.tensors[name]
        # Virtual memory only: the pages between the two blocks are never touched.
        flat = torch.empty(far + near[0].numel(), dtype=near.dtype, device=device)
        wide = flat.as_strided((2, *near.shape[1:]), (far, *near[0].contiguous().stride()))
        wide[1] = near[made.tensors["block_table"][0, 0].long()]
        moved[name] = wide
    table = torch.ones_like(made.tensors["block_table"])
    check(made.changed(block_table=table, **moved), form)


def test_unaligned_rows_are_read_one_by_one(device: torch.device) -> None:
    made = problem(MIXED, Sizes(dtype=torch.float16), device)
    query = made.tensors["query"]
    flat = torch.zeros(query.numel() + 1, dtype=query.dtype, device=device)
    shifted = flat[1:].view(query.shape)
    shifted.copy_(query)
    assert kernel.aligned(query)
    assert not kernel.aligned(shifted)
    check(made.changed(query=shifted), "kernel")


@pytest.mark.parametrize(
    ("programs", "max_seq_len", "splits"),
    [(1, 255, 1), (1, 512, 2), (1, 10**6, 32), (66, 10**6, 4), (264, 10**6, 1), (0, 0, 1)],
)
def test_splits_fill_the_card(
    programs: int, max_seq_len: int, splits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    assert kernel.choose_splits(torch.device("cuda"), programs, max_seq_len) == splits


def test_needs_no_triton_on_a_cpu() -> None:
    script = """
import sys
sys.modules["triton"] = None
import torch
from ddtree.kernels.tree.attention import tree_attention
one = torch.ones(1, dtype=torch.int32)
cache = torch.ones(1, 8, 1, 32)
out = tree_attention(
    torch.ones(1, 1, 32), cache, cache, 0 * one[None], one, torch.tensor([0, 1]).int(),
    torch.ones(1, 1, 1, dtype=torch.int64), torch.ones(1, dtype=torch.bool),
    scale=1.0, max_query_len=1, max_seq_len=1,
)
assert torch.equal(out, torch.ones(1, 1, 32))
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.fixture
def small(device: torch.device) -> Problem:
    return problem((tree(trees.star(3), 4), chain(2, 0)), Sizes(heads=4, kv_heads=2), device)


REFUSED: dict[str, dict[str, Any]] = {
    "query: expected shape": {"query": lambda x: x[0]},
    "query: expected dtype": {"query": lambda x: x.double()},
    "query: expected stride 1": {"query": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2)},
    "query: expected a head size": {"query": lambda x: x.repeat(1, 1, 9)},
    "query: expected a multiple": {"query": lambda x: x[:, :3]},
    "key_cache: expected dtype": {"key_cache": lambda x: x.half()},
    "key_cache: expected shape": {"key_cache": lambda x: x[..., :8]},
    "key_cache: expected at least": {
        "key_cache": lambda x: x[:, :0],
        "value_cache": lambda x: x[:, :0],
    },
    "value_cache: expected shape": {"value_cache": lambda x: x[:, :3]},
    "block_table: expected dtype": {"block_table": lambda x: x.long()},
    "block_table: expected stride 1": {"block_table": lambda x: x.t().contiguous().t()},
    "seq_lens: expected shape": {"seq_lens": lambda x: x[None]},
    "query_start: expected shape": {"query_start": lambda x: x[1:]},
    "visible: expected shape": {"visible": lambda x: x[:1]},
    "visible: expected a contiguous": {"visible": lambda x: x[:, ::2]},
    "is_chain: expected dtype": {"is_chain": lambda x: x.int()},
    "max_query_len": {"max_query_len": lambda x: x + 100},
    "max_seq_len": {"max_seq_len": lambda x: x + 1000},
    "out: expected shape": {"out": lambda x: x[1:]},
    "out: expected dtype": {"out": lambda x: x.half()},
    "form: expected auto": {"form": lambda _: "fast"},
    "num_splits": {"num_splits": lambda _: 33},
    "query_lens: expected together": {"seq_lens_host": lambda _: None},
    "query_lens: expected 2": {"query_lens": lambda x: x[:1]},
    "query_lens: expected lengths": {"query_lens": lambda x: [-1, *x[1:]]},
    "seq_lens_host: expected lengths": {"seq_lens_host": lambda x: [99, *x[1:]]},
    "seq_lens_host: expected no fewer": {"seq_lens_host": lambda x: [1, *x[1:]]},
    "query_lens: expected a sum": {"query": lambda x: x[:5], "out": lambda x: x[:5]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_arguments_are_refused(message: str, small: Problem) -> None:
    arguments: dict[str, Any] = {**small.tensors, **small.numbers, **small.lengths}
    arguments |= {"out": torch.empty_like(small.tensors["query"]), "form": "auto", "num_splits": 1}
    assert tree_attention(**arguments).shape == small.exact.shape
    for name, change in REFUSED[message].items():
        arguments[name] = change(arguments[name])
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        tree_attention(**arguments)


def test_reference_form_rounds_the_exact_result(small: Problem) -> None:
    arguments: dict[str, Any] = {**small.tensors, **small.numbers}
    result = tree_attention(**arguments, form="reference")
    assert torch.equal(result, small.exact.to(result.dtype))
