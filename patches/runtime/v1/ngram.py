"""Several continuations of a request's last tokens, found in its own text and merged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..engine import Engine
from ..kernels.tree.trie import trie
from .occurrences import Occurrences, Tokens

# Continuations looked at per request; more are rarely distinct within a budget.
MOST = 8


def trie_of(
    engine: Engine, runner: Any, chains: list[list[int]], takes: list[bool]
) -> tuple[list[list[int]], list[list[int] | None]]:
    """Tokens and parents per request: vLLM's own match first, then what other matches add.

    A request that takes no tree, or that has no match, keeps its chain.
    """
    batch, drafter = runner.input_batch, runner.drafter
    lists: list[list[list[int]]] = []
    for line, chain in enumerate(chains):
        found = [list(chain)]
        if chain and takes[line]:
            text = batch.token_ids_cpu[line, : batch.num_tokens_no_spec[line]]
            depth = min(engine.depth, runner.max_model_len - len(text))
            known = engine.texts.get(batch.req_ids[line])
            if known is None:
                known = engine.texts[batch.req_ids[line]] = Occurrences(
                    drafter.min_n, drafter.max_n
                )
            found += continuations(known.of_end(text), text, depth)
        lists.append(found)
    nodes, parents = merged(lists, engine.settings.budget)
    return (
        [nodes[line] if tree else chains[line] for line, tree in enumerate(takes)],
        [parents[line] if tree else None for line, tree in enumerate(takes)],
    )


def continuations(places: Iterable[int], text: Tokens, depth: int) -> list[list[int]]:
    """What followed at the places, in their order.

    Args:
        places: where the text went on after what it ends with.
        text: tokens so far.
        depth: tokens taken.

    Returns:
        At most `MOST` distinct continuations of 1 to `depth` tokens.
    """
    found: dict[tuple[int, ...], None] = {}
    for place in places:
        found.setdefault(tuple(text[place : place + depth].tolist()))
        if len(found) >= MOST:
            break
    return [list(tokens) for tokens in found]


def merged(
    lists: list[list[list[int]]], budget: int
) -> tuple[list[list[int]], list[list[int] | None]]:
    """Merge each request's continuations where they begin alike; tokens and parents per request."""
    most = max(len(found) for found in lists)
    longest = max((len(tokens) for found in lists for tokens in found), default=0)
    # Of one size, so that all of them are one tensor; what is missing is never read.
    full = [found + [[]] * (most - len(found)) for found in lists]
    padded = [[tokens + [0] * (longest - len(tokens)) for tokens in found] for found in full]
    tokens = torch.tensor(padded, dtype=torch.int32).view(len(lists), most, longest)
    lengths = torch.tensor([[len(one) for one in found] for found in full], dtype=torch.int32)
    tree = trie(tokens, lengths, budget)
    nodes, parents, counts = tree.tokens.tolist(), tree.parents.tolist(), tree.count.tolist()
    return (
        [line[:count] for line, count in zip(nodes, counts, strict=True)],
        [line[:count] for line, count in zip(parents, counts, strict=True)],
    )
