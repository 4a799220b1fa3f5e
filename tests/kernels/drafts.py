"""Drafted candidates for the builders' tests, and what holds for every tree that is built."""

import torch
from hypothesis import strategies as st

KINDS = ("spread", "ties", "certain", "hostile")
INF = float("inf")


def drafts(
    seed: int, kind: str, shape: tuple[int, int, int], *, repeats: bool, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Candidate ids and log-probabilities [R, D, K], in no order.

    `ties` holds few distinct values, 0.0 and -0.0 among them; `certain` 0.0 alone; `hostile` NaN,
    both infinities, positive values and numbers that float32 absorbs in a sum.
    """
    random = torch.Generator().manual_seed(seed)
    logp = -3 * torch.rand(shape, generator=random)
    few = torch.randint(0, 6, shape, generator=random)
    if kind == "ties":
        logp = torch.tensor([0.0, -0.0, -0.5, -1.0, -1.0, -1.5])[few]
    elif kind == "certain":
        logp = torch.zeros(shape)
    elif kind == "hostile":
        odd = torch.tensor([float("nan"), INF, -INF, 0.25, -1e-9, -30.0])[few]
        logp = torch.where(torch.rand(shape, generator=random) < 0.5, odd, logp)
    ids = torch.rand(shape, generator=random).argsort(-1)
    if repeats:
        ids = torch.randint(0, max(1, shape[2] // 2), shape, generator=random)
    return ids.to(device, torch.int32), logp.to(device)


def budgets(requests: int, nodes: int) -> st.SearchStrategy[list[int] | None]:
    """A ragged budget per request, 0 and too large ones among them, or none."""
    return st.none() | st.lists(st.integers(-1, nodes + 2), min_size=requests, max_size=requests)


def ragged(values: list[int] | None, device: torch.device) -> torch.Tensor | None:
    return None if values is None else torch.tensor(values, dtype=torch.int32, device=device)


def check_tree(tree: tuple[torch.Tensor, ...], nodes: int) -> None:
    """Layout, padding, parents before children, depths, and distinct siblings."""
    tokens, parents, depth, count = tree
    assert {tensor.dtype for tensor in tree} == {torch.int32}
    assert all(tensor.is_contiguous() for tensor in tree)
    assert tokens.shape == parents.shape == depth.shape == (len(count), nodes)
    for token, parent, deep, real in zip(
        tokens.tolist(), parents.tolist(), depth.tolist(), count.tolist(), strict=True
    ):
        assert 0 <= real <= nodes
        assert token[real:] == [-1] * (nodes - real)
        assert parent[real:] == deep[real:] == [0] * (nodes - real)
        rows = [0, *deep]
        for node in range(real):
            assert 0 <= parent[node] <= node
            assert deep[node] == rows[parent[node]] + 1
        assert len(set(zip(parent[:real], token[:real], strict=True))) == real


def same(one: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def head(tree: tuple[torch.Tensor, ...], nodes: int) -> tuple[torch.Tensor, ...]:
    """The first `nodes` nodes of every request."""
    tokens, parents, depth, count = tree
    return tokens[:, :nodes], parents[:, :nodes], depth[:, :nodes], count.clamp(max=nodes)
