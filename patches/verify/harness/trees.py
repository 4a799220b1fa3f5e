"""Trees to try: random ones, and those in which mistakes show."""

from __future__ import annotations

import random
from dataclasses import dataclass

VOCABULARY = 11


@dataclass(frozen=True, slots=True)
class Case:
    """One request: a tree, and the target's token at each of its rows."""

    tokens: list[int]
    parents: list[int]
    target: list[int]


def cases(source: random.Random, nodes: int, number: int) -> list[Case]:
    """Requests of at most `nodes` nodes: shapes that are easy to get wrong, then random ones."""
    shapes = [[], chain(nodes), star(nodes), comb(nodes), late(nodes), chain(1)]
    shapes += [grown(source, source.randrange(nodes + 1)) for _ in range(number)]
    return [made(source, shape[:nodes]) for shape in shapes]


def chain(nodes: int) -> list[int]:
    """Parents of a chain."""
    return list(range(nodes))


def star(nodes: int) -> list[int]:
    """Every node is the root's child."""
    return [0] * nodes


def comb(nodes: int) -> list[int]:
    """A chain with one leaf beside every node."""
    return [node if node % 2 == 0 else node - 1 for node in range(nodes)]


def late(nodes: int) -> list[int]:
    """Leaves first; the path goes through the last child every time."""
    return [0 if node < nodes // 2 else node for node in range(nodes)]


def grown(source: random.Random, nodes: int) -> list[int]:
    """Every node hangs below any row before it."""
    return [source.randrange(node + 1) for node in range(nodes)]


def made(source: random.Random, parents: list[int]) -> Case:
    """Tokens that differ among siblings where the vocabulary allows, and a target that follows.

    At most rows the target's token is that of a child, and not always of the first; elsewhere it
    is any token, also one that only a child of another row has.
    """
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    tokens: list[int] = []
    for parent in parents:
        free = [token for token in range(VOCABULARY) if token not in children[parent]]
        # More children than tokens: the lowest of equal siblings has to win.
        token = source.choice(free or range(VOCABULARY))
        children[parent].append(token)
        tokens.append(token)
    target = [
        source.choice(below) if below and source.random() < 0.8 else source.randrange(VOCABULARY)
        for below in children
    ]
    return Case(tokens, list(parents), target)
