"""What the runtime's trees, walks and masks have to be, written as plainly as possible.

Nothing here shares code with the kernels that it judges; it works on lists and in Python.
"""

from __future__ import annotations

import heapq
import struct

Tree = tuple[list[int], list[int]]


def walk(target: list[int], tokens: list[int], parents: list[int]) -> list[int]:
    """Rows of the accepted path, the root first.

    Args:
        target: the target's token at every row.
        tokens: of every node; node `j` is row `j + 1`.
        parents: row of every node's parent.
    """
    path = [0]
    for node, (token, parent) in enumerate(zip(tokens, parents, strict=True)):
        # Parents come before children, so one pass suffices; the lowest of equal siblings wins.
        if parent == path[-1] and token == target[parent]:
            path.append(node + 1)
    return path


def permutation(path: list[int], nodes: int, width: int) -> list[int]:
    """The path, the other rows of `nodes` nodes ascending, then the padding up to `width` nodes."""
    others = [row for row in range(nodes + 1) if row not in path]
    return [*path, *others, *range(nodes + 1, width + 1)]


def sees(parents: list[int]) -> list[set[int]]:
    """The rows that each row sees of its own step: its ancestors and itself."""
    seen = [{0}]
    for node, parent in enumerate(parents):
        seen.append(seen[parent] | {node + 1})
    return seen


def depths(parents: list[int]) -> list[int]:
    """Distance of every row to the root."""
    return [len(rows) - 1 for rows in sees(parents)]


def paths(tokens: list[int], parents: list[int]) -> list[tuple[int, ...]]:
    """Tokens from the root to every row; the root's own is empty."""
    found: list[tuple[int, ...]] = [()]
    for token, parent in zip(tokens, parents, strict=True):
        found.append((*found[parent], token))
    return found


def is_tree(tokens: list[int], parents: list[int]) -> bool:
    """Whether parents come before children, and no two children of a node have one token."""
    ordered = all(0 <= parent <= node for node, parent in enumerate(parents))
    return ordered and len(set(zip(parents, tokens, strict=True))) == len(tokens)


def best(positions: list[list[tuple[int, float]]], budget: int) -> dict[tuple[int, ...], float]:
    """The `budget` most probable prefixes with their costs, by a heap over whole prefixes.

    Args:
        positions: token and cost (negative log-probability, 0 or more) of every candidate.
        budget: how many.
    """
    heap: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    found: dict[tuple[int, ...], float] = {}
    while heap and len(found) <= budget:
        cost, prefix = heapq.heappop(heap)
        found[prefix] = cost
        if len(prefix) < len(positions):
            for token, own in positions[len(prefix)]:
                heapq.heappush(heap, (single(cost + own), (*prefix, token)))
    del found[()]
    return found


def merged(continuations: list[list[int]]) -> dict[tuple[int, ...], None]:
    """Every prefix of every continuation, in the order in which they appear."""
    return {
        tuple(tokens[: depth + 1]): None for tokens in continuations for depth in range(len(tokens))
    }


def beside(
    chain: list[tuple[int, float]], options: list[list[tuple[int, float]]], budget: int
) -> set[tuple[int, ...]]:
    """The chain's prefixes, and the cheapest of the leaves beside them.

    Args:
        chain: token and cost of every step.
        options: token and cost of every step's candidates.
        budget: prefixes in all.
    """
    spine = [token for token, _ in chain]
    found = {tuple(spine[: depth + 1]) for depth in range(min(len(spine), budget))}
    cost, leaves = 0.0, []
    for step, (token, own) in enumerate(chain):
        leaves += [
            (single(cost + other), (*spine[:step], sibling))
            for sibling, other in options[step]
            if sibling != token
        ]
        cost = single(cost + own)
    return found | {prefix for _, prefix in sorted(leaves)[: max(0, budget - len(found))]}


def moved(rows: list[int], path: list[int]) -> list[int]:
    """What the places of a step hold after its accepted rows moved to the front."""
    return [*(rows[row] for row in path), *rows[len(path) :]]


def single(value: float) -> float:
    """`value` rounded to float32."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
