"""Several continuations of a request's last tokens, found in its own text and merged."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..engine import Engine
from ..kernels.tree.trie import trie

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
            found += continuations(text, drafter.min_n, drafter.max_n, depth)
        lists.append(found)
    nodes, parents = merged(lists, engine.settings.budget)
    return (
        [nodes[line] if tree else chains[line] for line, tree in enumerate(takes)],
        [parents[line] if tree else None for line, tree in enumerate(takes)],
    )


def continuations(
    text: npt.NDArray[np.int32], shortest: int, longest: int, depth: int
) -> list[list[int]]:
    """What followed earlier occurrences of the text's end, the longest match first.

    Args:
        text: tokens so far.
        shortest: fewest tokens that have to match.
        longest: most tokens that are compared.
        depth: tokens taken after a match.

    Returns:
        At most `MOST` distinct continuations of 1 to `depth` tokens; of equally long matches the
        latest comes first.
    """
    found: dict[tuple[int, ...], None] = {}
    for length in range(min(longest, len(text) - 1), shortest - 1, -1):
        windows = np.lib.stride_tricks.sliding_window_view(text[:-1], length)
        ends = np.flatnonzero((windows == text[-length:]).all(1)) + length
        for end in ends[::-1]:
            found.setdefault(tuple(text[end : end + depth].tolist()))
            if len(found) >= MOST:
                return [list(tokens) for tokens in found]
    return [list(tokens) for tokens in found]


def merged(
    lists: list[list[list[int]]], budget: int
) -> tuple[list[list[int]], list[list[int] | None]]:
    """Merge each request's continuations where they begin alike; tokens and parents per request."""
    most = max(len(found) for found in lists)
    longest = max((len(tokens) for found in lists for tokens in found), default=0)
    tokens = torch.zeros(len(lists), most, longest, dtype=torch.int32)
    lengths = torch.zeros(len(lists), most, dtype=torch.int32)
    for line, found in enumerate(lists):
        for number, continuation in enumerate(found):
            tokens[line, number, : len(continuation)] = torch.tensor(continuation)
            lengths[line, number] = len(continuation)
    tree = trie(tokens, lengths, budget)
    nodes, parents, counts = tree.tokens.tolist(), tree.parents.tolist(), tree.count.tolist()
    return (
        [line[:count] for line, count in zip(nodes, counts, strict=True)],
        [line[:count] for line, count in zip(parents, counts, strict=True)],
    )
