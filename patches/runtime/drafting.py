"""Turn what a drafter gives into trees, and remember them for the next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .capture import Capture
from .engine import Engine
from .kernels.tree.build import build
from .kernels.tree.candidates import Candidates
from .kernels.tree.chain_siblings import chain_siblings
from .kernels.tree.layout import Tree
from .ngram import trie_of
from .pending import Drafted

NO_LOGITS = "the drafter gave no logits"

Lists = list[list[int]]


def draft(
    engine: Engine, runner: Any, drafts: torch.Tensor | Lists, capture: Capture
) -> torch.Tensor | Lists:
    """The drafts to schedule in the place of the drafter's own.

    Args:
        engine: the runner's state; takes the trees.
        runner: vLLM's `GPUModelRunner`.
        drafts: the drafter's chains, [R, D] or a list per request.
        capture: what was seen while it drafted.
    """
    requests = runner.input_batch.req_ids[: len(drafts)]
    takes_tree = [engine.reason(runner, request) is None for request in requests]
    for request, takes in zip(requests, takes_tree, strict=True):
        if not takes:
            engine.counters.fallbacks[str(engine.reason(runner, request))] += 1
    if isinstance(drafts, torch.Tensor):
        return _from_logits(engine, drafts, capture, requests, takes_tree)
    return _from_lists(engine, runner, drafts, requests, takes_tree)


def _from_logits(
    engine: Engine,
    chain: torch.Tensor,
    capture: Capture,
    requests: Sequence[str],
    takes_tree: list[bool],
) -> torch.Tensor | Lists:
    found = capture.per_position(*chain.shape)
    if found is None:
        engine.counters.fallbacks.update([NO_LOGITS] * len(requests))
        return chain
    tree = _tree(engine, chain, found, block=len(capture.calls) == 1)
    drafted = Drafted(tree.tokens, tree.parents, tree.count)
    lines = zip(requests, takes_tree, strict=True)
    engine.pending.record(drafted, [request if takes else None for request, takes in lines])
    if all(takes_tree):
        # What pads a tree is never walked, but it has to be a token of the vocabulary.
        return tree.tokens.clamp(min=0)
    chains, nodes, counts = chain.tolist(), tree.tokens.tolist(), tree.count.tolist()
    return [
        nodes[line][: counts[line]] if takes else chains[line]
        for line, takes in enumerate(takes_tree)
    ]


def _tree(engine: Engine, chain: torch.Tensor, found: Candidates, *, block: bool) -> Tree:
    settings = engine.settings
    if block and chain.shape[1] > 1 and settings.shape != "siblings":
        return build(
            found.ids,
            found.logp,
            settings.budget,
            spine_first=settings.shape == "spine_first",
            max_siblings=settings.max_siblings,
            ranked=True,
        )
    # The chain's token is the most probable one, so it is among the candidates.
    ids = chain.to(found.ids.dtype)
    logp = torch.where(found.ids == ids[..., None], found.logp, -torch.inf).amax(-1)
    return chain_siblings(ids.contiguous(), logp, found.ids, found.logp, settings.budget)


def _from_lists(
    engine: Engine,
    runner: Any,
    chains: Lists,
    requests: Sequence[str],
    takes_tree: list[bool],
) -> Lists:
    if runner.speculative_config.method == "ngram":
        nodes, parents = trie_of(engine, runner, chains, takes_tree)
    else:
        nodes, parents = _given(runner.drafter, chains)
    budget = engine.settings.budget
    nodes = [list(tokens[:budget]) for tokens in nodes]
    lines = zip(nodes, parents, takes_tree, strict=True)
    grows = [bool(tokens) and above is not None and takes for tokens, above, takes in lines]
    if any(grows):
        drafted = _packed(nodes, parents, grows, budget, runner.device)
        names = zip(requests, grows, strict=True)
        engine.pending.record(drafted, [request if grown else None for request, grown in names])
    return [
        tokens if grown or above is None else _first_branch(tokens, above)
        for tokens, above, grown in zip(nodes, parents, grows, strict=True)
    ]


def _given(drafter: Any, chains: Lists) -> tuple[Lists, list[list[int] | None]]:
    """The trees of a proposer class: it may set `draft_parents`, a list per request, on itself.

    `draft_parents[r][j]` is the row of node `j`'s parent, where row 0 is the root and node `j` is
    row `j + 1`; None for a chain.

    Raises:
        ValueError: the parents do not belong to the drafts, or one does not precede its child.
    """
    given = getattr(drafter, "draft_parents", None)
    if given is None:
        return chains, [None] * len(chains)
    if len(given) != len(chains):
        raise ValueError(f"draft_parents: expected {len(chains)} lists, found {len(given)}")
    for number, (tokens, above) in enumerate(zip(chains, given, strict=True)):
        if above is None:
            continue
        if len(above) != len(tokens):
            raise ValueError(
                f"draft_parents[{number}]: expected {len(tokens)} parents, found {len(above)}"
            )
        if any(not 0 <= parent <= row for row, parent in enumerate(above)):
            raise ValueError(f"draft_parents[{number}]: expected parents before their children")
    return chains, list(given)


def _packed(
    nodes: Lists,
    parents: Sequence[list[int] | None],
    grows: list[bool],
    width: int,
    device: torch.device,
) -> Drafted:
    """Lists as tensors of one width in all rounds, so that requests of several can be joined."""
    lines = list(zip(nodes, parents, grows, strict=True))
    tokens = [line + [-1] * (width - len(line)) for line, _, _ in lines]
    above = [
        list(up or [])[: len(line)] + [0] * (width - len(line)) if grown else [0] * width
        for line, up, grown in lines
    ]
    counts = [len(line) if grown else 0 for line, _, grown in lines]
    return Drafted(
        torch.tensor(tokens, dtype=torch.int32, device=device),
        torch.tensor(above, dtype=torch.int32, device=device),
        torch.tensor(counts, dtype=torch.int32, device=device),
    )


def _first_branch(tokens: list[int], parents: list[int]) -> list[int]:
    """The tree's chain of first children, for a request that is verified as a chain."""
    chain, end = [], 0
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=False)):
        if parent == end:
            chain.append(token)
            end = node + 1
    return chain
