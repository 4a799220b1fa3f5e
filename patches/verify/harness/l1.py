"""L1: the walk and the builds of the installed runtime against plain references."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from . import events, plain, plan, trees
from .check import Difference, check, differ

NODES = (1, 2, 3, 7, 16, 33, 63, 64, 65, 100, 128)
SHAPES = ((1, 1), (1, 8), (3, 2), (4, 4), (7, 16), (12, 5))
BUDGETS = (1, 2, 7, 16, 33, 64, 128)
Trial = Callable[[], Difference]


def run(job: dict[str, Any], folder: Path, part: str) -> None:
    """Emit one check per unit."""
    del folder
    events.progress(f"L1: walks and builds against plain references; {plan.left(job, part)}")
    seed = job["seed"]
    checks = [
        check("walk", walks(random.Random(seed)), "batches of trees"),
        check("build", builds(random.Random(seed + 1)), "builds whose nodes are the heap's"),
        check("ties", ties(random.Random(seed + 2)), "builds with equal probabilities"),
        check("chain_siblings", leaves(random.Random(seed + 3)), "chains with leaves"),
        check("trie", merges(random.Random(seed + 4)), "merged continuations"),
    ]
    events.emit("checks", part=part, checks=checks)


def walks(
    source: random.Random, form: str = "auto", sizes: tuple[int, ...] = NODES
) -> Iterator[Trial]:
    """Batches of every shape of tree, padded and one after another."""
    for nodes in sizes:
        for ragged in (False, True):
            batch = trees.cases(source, nodes, 20)
            yield partial(walked, batch, nodes, ragged, form)


def walked(batch: list[trees.Case], nodes: int, ragged: bool, form: str) -> Difference:
    """What is wrong with the walk of a batch."""
    import torch
    from ddtree_runtime.kernels.tree.walk import row_starts, walk

    counts = [len(case.tokens) for case in batch]
    # Padding holds what would be followed if it were looked at.
    tokens = [case.tokens + [case.target[0]] * (nodes - len(case.tokens)) for case in batch]
    parents = [case.parents + [0] * (nodes - len(case.parents)) for case in batch]
    count = int32(counts)
    if ragged:
        flat = [token for case in batch for token in case.target]
        found = walk(
            int32(flat), int32(tokens), int32(parents), count,
            row_start=row_starts(count), form=form,
        )  # fmt: skip
    else:
        rows = [case.target + [0] * (nodes + 1 - len(case.target)) for case in batch]
        found = walk(int32(rows), int32(tokens), int32(parents), count, form=form)
    for line, case in enumerate(batch):
        path = plain.walk(case.target, case.tokens, case.parents)
        perm = plain.permutation(path, len(case.tokens), nodes)
        have = tuple(torch.as_tensor(part)[line].tolist() for part in found)
        wrong = differ(have, (perm, len(path) - 1, case.target[path[-1]], path[-1]))
        if wrong:
            return wrong
    return None


def builds(source: random.Random, form: str = "auto") -> Iterator[Trial]:
    """Distributions of many shapes; probabilities are all different."""
    for depth, width in SHAPES:
        for budget in BUDGETS:
            positions = [_position(source, width) for _ in range(depth)]
            yield partial(built, positions, budget, form)


def ties(source: random.Random) -> Iterator[Trial]:
    """Few distinct probabilities, impossible candidates, and ones that are certain."""
    for _ in range(40):
        width = source.choice((1, 2, 5))
        positions = [
            list(zip(source.sample(range(500), width), costs, strict=True))
            for costs in _tied(source, width)
        ]
        yield partial(built, positions, source.choice(BUDGETS), "auto")


def built(positions: list[list[tuple[int, float]]], budget: int, form: str) -> Difference:
    """What is wrong with a build.

    Best first: what comes earlier is no less probable, so that every prefix is the best tree of
    its size. Where the last nodes are equally probable, either may be in.
    """
    found = _build(positions, budget, form)
    if isinstance(found, str):
        return found
    possible = [[option for option in line if option[1] < math.inf] for line in positions]
    want = plain.best(possible, budget)
    have = {prefix: _cost(prefix, positions) for prefix in found}
    last = max(want.values(), default=0.0)
    sets = [{prefix for prefix, cost in one.items() if cost < last} for one in (have, want)]
    return differ(list(have.values()), list(want.values())) or differ(*sets)


def _cost(prefix: tuple[int, ...], positions: list[list[tuple[int, float]]]) -> float:
    """Cost of a prefix, summed as float32."""
    total = 0.0
    for token, line in zip(prefix, positions, strict=False):
        total = plain.single(total + dict(line)[token])
    return total


def leaves(source: random.Random) -> Iterator[Trial]:
    """Chains of an autoregressive drafter with the other candidates of each step."""
    for depth, width in SHAPES:
        for budget in BUDGETS:
            options = [_position(source, width) for _ in range(depth)]
            chain = [source.choice(line) for line in options]
            yield partial(_leaves, chain, options, budget)


def merges(source: random.Random) -> Iterator[Trial]:
    """Continuations that begin alike."""
    for _ in range(40):
        lists = [
            [source.randrange(3) for _ in range(source.randrange(1, 6))]
            for _ in range(source.randrange(1, 8))
        ]
        yield partial(_merges, lists, source.choice(BUDGETS))


def _build(
    positions: list[list[tuple[int, float]]], budget: int, form: str
) -> list[tuple[int, ...]] | str:
    """Prefixes of the built tree's nodes, or what is wrong with it."""
    from ddtree_runtime.kernels.tree.build import build

    ids = int32([[[token for token, _ in line] for line in positions]])
    logp = float32([[[-cost for _, cost in line] for line in positions]])
    return _prefixes(build(ids, logp, budget, form=form))


def _leaves(
    chain: list[tuple[int, float]], options: list[list[tuple[int, float]]], budget: int
) -> Difference:
    from ddtree_runtime.kernels.tree.chain_siblings import chain_siblings

    made = chain_siblings(
        int32([[token for token, _ in chain]]),
        float32([[-cost for _, cost in chain]]),
        int32([[[token for token, _ in line] for line in options]]),
        float32([[[-cost for _, cost in line] for line in options]]),
        budget,
    )
    found = _prefixes(made)
    if isinstance(found, str):
        return found
    return differ(set(found), plain.beside(chain, options, budget))


def _merges(lists: list[list[int]], budget: int) -> Difference:
    from ddtree_runtime.kernels.tree.trie import trie

    longest = max(map(len, lists))
    tokens = int32([[line + [9] * (longest - len(line)) for line in lists]])
    found = _prefixes(trie(tokens, int32([[len(line) for line in lists]]), budget))
    if isinstance(found, str):
        return found
    return differ(found, list(plain.merged(lists))[:budget])


def _prefixes(tree: Any) -> list[tuple[int, ...]] | str:
    count = int(tree.count[0])
    tokens, parents = tree.tokens[0, :count].tolist(), tree.parents[0, :count].tolist()
    if not plain.is_tree(tokens, parents):
        return f"no tree: tokens {tokens}, parents {parents}"
    return plain.paths(tokens, parents)[1:]


def _position(source: random.Random, width: int) -> list[tuple[int, float]]:
    """Candidates of one position, not sorted, with costs that float32 holds."""
    tokens = source.sample(range(500), width)
    return [(token, plain.single(source.expovariate(0.7))) for token in tokens]


def _tied(source: random.Random, width: int) -> list[list[float]]:
    choices = (0.0, 0.5, 1.0, math.inf)
    return [[source.choice(choices) for _ in range(width)] for _ in range(source.randrange(1, 7))]


def int32(values: Any) -> Any:
    """An int32 tensor where kernels run."""
    import torch

    return torch.tensor(values, dtype=torch.int32, device=device())


def float32(values: Any) -> Any:
    """A float32 tensor where kernels run."""
    import torch

    return torch.tensor(values, dtype=torch.float32, device=device())


def device() -> str:
    """Where kernels run."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
