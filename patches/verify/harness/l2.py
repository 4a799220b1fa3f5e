"""L2: every form of the installed kernels that runs here, against plain references and float64."""

from __future__ import annotations

import importlib.util
import math
import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from . import events, l1, plain, plan, trees
from .check import Difference, check, differ

NODES = (1, 7, 33, 64, 100)
# Error allowed, as a share of the largest value: twice the rounding of the type, once for the
# weights and once for the result; in float32 the sums dominate.
BOUND = {"float32": 2**-16, "float16": 2**-10, "bfloat16": 2**-7}
BLOCK = 16


def run(job: dict[str, Any], folder: Path, part: str) -> None:
    """Emit one check per kernel and form."""
    del folder
    checks = []
    for form, name in forms().items():
        events.progress(f"L2: kernels, {name}; {plan.left(job, part)}")
        source = random.Random(job["seed"])
        # Under the interpreter a large tree takes seconds.
        sizes = NODES if "interpreter" not in name else NODES[:3]
        checks += [
            check(f"walk, {name}", l1.walks(source, form, sizes), "batches of trees"),
            check(
                f"build, {name}",
                list(l1.builds(source, form))[:: 1 if len(sizes) > 3 else 5],
                "builds",
            ),
            check(f"ancestors, {name}", masks(source, form, sizes), "batches of trees"),
            check(f"commit, {name}", commits(source, form, sizes), "caches"),
            check(f"attention, {name}", attentions(source, form, sizes), "batches against float64"),
        ]
    checks.append(check("candidates", picks(random.Random(job["seed"])), "distributions"))
    events.emit("checks", part=part, checks=checks)


def forms() -> dict[str, str]:
    """Forms of the kernels that run here, with their names for a reader."""
    import torch

    names = {"vectorised": "torch"}
    if importlib.util.find_spec("triton") is None:
        return names
    if torch.cuda.is_available():
        return {"kernel": "Triton on the GPU", **names}
    if os.environ.get("TRITON_INTERPRET") == "1":
        return {"kernel": "Triton under the interpreter", **names}
    return names


def masks(source: random.Random, form: str, sizes: tuple[int, ...]) -> Iterator[l1.Trial]:
    """Which rows see which."""
    for nodes in sizes:
        batch = trees.cases(source, nodes, 12)
        yield partial(_masked, batch, nodes, form)


def _masked(batch: list[trees.Case], nodes: int, form: str) -> Difference:
    from ddtree_runtime.kernels.tree.ancestors import ancestors

    found = ancestors(_parents(batch, nodes), _counts(batch), form=form)
    for line, case in enumerate(batch):
        rows = plain.sees(case.parents)
        have = [_set(words) for words in found.visible[line, : len(rows)].tolist()]
        depth = found.depth[line, : len(rows)].tolist()
        chain = case.parents == trees.chain(len(case.parents))
        wrong = differ(have, rows) or differ(depth, plain.depths(case.parents))
        wrong = wrong or differ(bool(found.is_chain[line]), chain)
        if wrong:
            return wrong
    return None


def commits(source: random.Random, form: str, sizes: tuple[int, ...]) -> Iterator[l1.Trial]:
    """Accepted rows that move to the front of their request's slots."""
    for nodes in sizes:
        batch = trees.cases(source, nodes, 6)
        yield partial(_moved, batch, nodes, source.random(), form)


def _moved(batch: list[trees.Case], nodes: int, seed: float, form: str) -> Difference:
    import torch
    from ddtree_runtime.kernels.tree.commit import CommitPlan, commit

    rows, source = nodes + 1, random.Random(seed)
    blocks = -(-len(batch) * rows // BLOCK)
    order = source.sample(range(blocks * BLOCK), len(batch) * rows)
    slots = torch.tensor(order, device=l1.device()).view(len(batch), rows)
    cache = torch.arange(blocks * BLOCK * 6.0, device=l1.device()).view(blocks, BLOCK, 2, 3)
    want = cache.flatten(0, 1).clone()
    walked = [plain.walk(case.target, case.tokens, case.parents) for case in batch]
    for line, path in enumerate(walked):
        before = cache.flatten(0, 1)[slots[line]]
        want[slots[line]] = before[plain.moved(list(range(rows)), path)]
    perm = [
        plain.permutation(path, len(case.tokens), nodes)
        for path, case in zip(walked, batch, strict=True)
    ]
    accepted = l1.int32([len(path) - 1 for path in walked])
    commit(CommitPlan.of_views([cache]), slots, l1.int32(perm), accepted, form=form)
    equal = torch.equal(cache.flatten(0, 1), want)
    return None if equal else "a slot holds another row than it should"


def attentions(source: random.Random, form: str, sizes: tuple[int, ...]) -> Iterator[l1.Trial]:
    """Trees and chains over contexts that start and end inside blocks."""
    for dtype in BOUND:
        for nodes in sizes:
            batch = trees.cases(source, nodes, 1)[:5]
            yield partial(_attended, batch, dtype, source.randrange(1 << 30), form)


def _attended(batch: list[trees.Case], dtype: str, seed: int, form: str) -> Difference:
    import torch
    from ddtree_runtime.kernels.tree.ancestors import ancestors
    from ddtree_runtime.kernels.tree.attention import tree_attention

    generator = torch.Generator().manual_seed(seed)
    kind, nodes = getattr(torch, dtype), max(len(case.tokens) for case in batch)
    rows = [len(case.tokens) + 1 for case in batch]
    lens = [context + own for context, own in zip((0, 5, 16, 37, 60), rows, strict=True)]
    most = -(-max(lens) // BLOCK)
    table = torch.randperm(len(batch) * most, generator=generator).view(len(batch), most)
    shape = (len(batch) * most, BLOCK, 2, 32)
    keys, values = (torch.randn(shape, generator=generator).to(kind) for _ in range(2))
    query = torch.randn((sum(rows), 4, 32), generator=generator).to(kind)
    seen = ancestors(_parents(batch, nodes), _counts(batch), form="vectorised")
    starts = [sum(rows[:line]) for line in range(len(rows) + 1)]
    device = l1.device()
    found = tree_attention(
        query.to(device), keys.to(device), values.to(device),
        table.to(device, torch.int32), l1.int32(lens), l1.int32(starts),
        seen.visible, seen.is_chain,
        scale=32**-0.5, max_query_len=max(rows), max_seq_len=max(lens), form=form,
    )  # fmt: skip
    exact = torch.cat([
        _exact(query[starts[line] : starts[line + 1]], keys, values, table[line], lens[line], case)
        for line, case in enumerate(batch)
    ])  # fmt: skip
    error = float((found.cpu().double() - exact).abs().max() / exact.abs().max())
    if error <= BOUND[dtype]:
        return None
    return f"{dtype}: error {error:.2e} of the largest value, {BOUND[dtype]:.2e} allowed"


def _exact(query: Any, keys: Any, values: Any, table: Any, length: int, case: trees.Case) -> Any:
    """Attention of one request in float64, with the whole mask written out."""
    import torch

    rows = len(query)
    key, value = (
        cache[table].flatten(0, 1)[:length].double().repeat_interleave(2, 1)
        for cache in (keys, values)
    )
    mask = torch.ones(rows, length, dtype=torch.bool)
    for row, seen in enumerate(plain.sees(case.parents)):
        mask[row, length - rows :] = torch.tensor([other in seen for other in range(rows)])
    scores = torch.einsum("qhd,khd->hqk", query.double(), key) * 32**-0.5
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, value)


def picks(source: random.Random) -> Iterator[l1.Trial]:
    """The best tokens of logits."""
    for vocabulary in (1, 7, 512):
        for _ in range(5):
            logits = [source.gauss(0, 3) for _ in range(vocabulary)]
            yield partial(_picked, logits)


def _picked(logits: list[float]) -> Difference:
    from ddtree_runtime.kernels.tree.candidates import candidates

    most = min(5, len(logits))
    found = candidates(l1.float32([[logits]]), most)
    order = sorted(range(len(logits)), key=lambda token: -logits[token])[:most]
    total = math.log(math.fsum(math.exp(value) for value in logits))
    wrong = differ(found.ids[0, 0].tolist(), order)
    error = max(
        abs(have - (logits[token] - total))
        for have, token in zip(found.logp[0, 0].tolist(), order, strict=True)
    )
    return wrong or (None if error < 1e-4 else f"log-probabilities are off by {error:.2e}")


def _parents(batch: list[trees.Case], nodes: int) -> Any:
    return l1.int32([case.parents + [0] * (nodes - len(case.parents)) for case in batch])


def _counts(batch: list[trees.Case]) -> Any:
    return l1.int32([len(case.tokens) for case in batch])


def _set(words: list[int]) -> set[int]:
    """Rows whose bits are set; bit 63 is the sign."""
    return {
        64 * place + bit for place, word in enumerate(words) for bit in range(64) if word >> bit & 1
    }
