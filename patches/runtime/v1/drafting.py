"""Turn what a V1 drafter gives into trees, and remember them for the next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..capture import Capture
from ..drafting import takes_tree, trees_of
from ..engine import Engine
from ..pending import Drafted
from ..transfer import to_device
from .ngram import trie_of

Lists = list[list[int]]


def draft(
    engine: Engine,
    runner: Any,
    drafts: torch.Tensor | Lists,
    capture: Capture,
    ended: Sequence[int] = (),
) -> torch.Tensor | Lists:
    """The drafts to schedule in the place of the drafter's own.

    Args:
        engine: the runner's state; takes the trees.
        runner: vLLM's `GPUModelRunner`.
        drafts: the drafter's chains, [R, D] or a list per request.
        capture: what was seen while it drafted.
        ended: lines of requests that get no drafts; see `limits`.
    """
    requests = runner.input_batch.req_ids[: len(drafts)]
    takes = takes_tree(engine, requests, ended)
    if isinstance(drafts, torch.Tensor):
        return _from_logits(engine, drafts, capture, requests, takes, ended)
    return _from_lists(engine, runner, drafts, requests, takes)


def _from_logits(
    engine: Engine,
    chain: torch.Tensor,
    capture: Capture,
    requests: Sequence[str],
    takes: list[bool],
    ended: Sequence[int],
) -> torch.Tensor | Lists:
    tree = trees_of(engine, chain, capture, requests, takes)
    if tree is None and not ended:
        return chain
    if tree is not None and all(takes):
        # What pads a tree is never walked, but it has to be a token of the vocabulary.
        return tree.tokens.clamp(min=0)
    # One copy, because the host waits for it.
    depth = chain.shape[1]
    parts = [chain] if tree is None else [chain, tree.count[:, None], tree.tokens]
    lines: Lists = torch.cat(parts, dim=1).tolist()
    for number in ended:
        lines[number] = []
    return [
        line[depth + 1 :][: line[depth]] if tree is not None and line and grown else line[:depth]
        for line, grown in zip(lines, takes, strict=True)
    ]


def _from_lists(
    engine: Engine,
    runner: Any,
    chains: Lists,
    requests: Sequence[str],
    takes: list[bool],
) -> Lists:
    if runner.speculative_config.method == "ngram":
        nodes, parents = trie_of(engine, runner, chains, takes)
    else:
        nodes, parents = _given(runner.drafter, chains)
    budget = engine.settings.budget
    nodes = [list(tokens[:budget]) for tokens in nodes]
    lines = zip(nodes, parents, takes, strict=True)
    grows = [bool(tokens) and tree for tokens, _, tree in lines]
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
        list(range(len(line)) if up is None else up)[: len(line)] + [0] * (width - len(line))
        if grown
        else [0] * width
        for line, up, grown in lines
    ]
    counts = [len(line) if grown else 0 for line, _, grown in lines]
    return Drafted(
        to_device(tokens, device, torch.int32),
        to_device(above, device, torch.int32),
        to_device(counts, device, torch.int32),
    )


def _first_branch(tokens: list[int], parents: list[int]) -> list[int]:
    """The tree's chain of first children, for a request that is verified as a chain."""
    chain, end = [], 0
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=False)):
        if parent == end:
            chain.append(token)
            end = node + 1
    return chain
