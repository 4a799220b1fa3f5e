"""Trees for the kernel tests: named shapes, their padded layout, and hypothesis strategies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import strategies as st

# Word boundaries of the visibility words, powers of two, odd sizes and more than two words.
WIDTHS = (1, 7, 63, 64, 65, 130)
VOCABULARY = 5


@dataclass(frozen=True, slots=True)
class Shape:
    """One request's tree without padding: node `j` is row `j + 1`, row 0 is the root.

    Attributes:
        parents: row of each node's parent, at most `j`.
        tokens: token of each node.
    """

    parents: tuple[int, ...]
    tokens: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.parents)

    def path(self, row: int) -> list[int]:
        """Rows from the root to `row`, both included."""
        rows = [row]
        while rows[-1] != 0:
            rows.append(self.parents[rows[-1] - 1])
        return rows[::-1]

    def depth(self, row: int) -> int:
        return len(self.path(row)) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Several shapes in the padded layout of `kernels/tree/README.md`."""

    tokens: torch.Tensor
    parents: torch.Tensor
    depth: torch.Tensor
    count: torch.Tensor


def empty() -> Shape:
    """A request without drafts."""
    return Shape((), ())


def one_node(token: int = 0) -> Shape:
    return Shape((0,), (token,))


def chain(count: int, vocabulary: int = VOCABULARY) -> Shape:
    return Shape(tuple(range(count)), tuple(j % vocabulary for j in range(count)))


def star(count: int) -> Shape:
    """`count` children of the root with distinct tokens."""
    return Shape((0,) * count, tuple(range(count)))


def comb(count: int) -> Shape:
    """A chain on the even nodes, each followed by a leaf: paths skip every other row."""
    parents, tokens, spine = [], [], 0
    for node in range(count):
        parents.append(spine)
        tokens.append(node % 2)
        if node % 2 == 1:
            spine = node + 1
    return Shape(tuple(parents), tuple(tokens))


def random_tree(
    count: int, seed: int, vocabulary: int = VOCABULARY, *, distinct: bool = True
) -> Shape:
    """A tree grown at random rows; sibling tokens are distinct unless `distinct` is false."""
    rng = random.Random(seed)
    taken: list[set[int]] = [set()]
    parents, tokens = [], []
    for _ in range(count):
        free = [row for row, used in enumerate(taken) if not distinct or len(used) < vocabulary]
        # Half of the nodes extend the newest branch, so that deep and bushy trees both occur.
        parent = free[-1] if rng.random() < 0.5 else rng.choice(free)
        choices = [t for t in range(vocabulary) if not distinct or t not in taken[parent]]
        token = rng.choice(choices)
        taken[parent].add(token)
        taken.append(set())
        parents.append(parent)
        tokens.append(token)
    return Shape(tuple(parents), tuple(tokens))


def duplicate_siblings(count: int, seed: int) -> Shape:
    """A tree with few tokens, several of them repeated under one parent."""
    return random_tree(count, seed, vocabulary=2, distinct=False)


def truncated(shape: Shape, count: int) -> Shape:
    """The first `count` nodes, as a scheduler that drops the last drafts leaves them."""
    return Shape(shape.parents[:count], shape.tokens[:count])


def batch(shapes: Sequence[Shape], width: int, device: torch.device | str = "cpu") -> Batch:
    """The padded layout of `shapes` for trees of at most `width` nodes."""
    for shape in shapes:
        if shape.count > width:
            raise ValueError(f"a tree of {shape.count} nodes does not fit {width}")

    def table(lines: list[tuple[int, ...]], padding: int) -> torch.Tensor:
        padded = [[*line, *[padding] * (width - len(line))] for line in lines]
        return torch.tensor(padded, dtype=torch.int32, device=device).reshape(len(lines), width)

    depths = [tuple(s.depth(row + 1) for row in range(s.count)) for s in shapes]
    return Batch(
        tokens=table([s.tokens for s in shapes], -1),
        parents=table([s.parents for s in shapes], 0),
        depth=table(depths, 0),
        count=torch.tensor([s.count for s in shapes], dtype=torch.int32, device=device),
    )


def shapes(max_nodes: int, *, duplicates: bool = False) -> st.SearchStrategy[Shape]:
    """One tree of 0 to `max_nodes` nodes: every named shape, random ones and truncated ones."""
    size = st.integers(0, max_nodes)
    seed = st.integers(0, 2**16)
    kinds = [
        st.just(empty()),
        st.integers(0, VOCABULARY - 1).map(one_node),
        size.map(chain),
        size.map(star),
        size.map(comb),
        st.builds(random_tree, size, seed),
        st.builds(random_tree, st.just(max_nodes), seed),
        st.builds(truncated, st.builds(random_tree, st.just(max_nodes), seed), size),
    ]
    if duplicates:
        kinds.append(st.builds(duplicate_siblings, size, seed))
    return st.one_of(kinds)


def widths(limit: int = max(WIDTHS)) -> st.SearchStrategy[int]:
    return st.sampled_from([width for width in WIDTHS if width <= limit])


@st.composite
def batches(
    draw: st.DrawFn, *, limit: int = max(WIDTHS), requests: int = 4, duplicates: bool = False
) -> tuple[list[Shape], int]:
    """Trees of one batch and the width of its layout."""
    width = draw(widths(limit))
    one = shapes(width, duplicates=duplicates)
    return draw(st.lists(one, min_size=1, max_size=requests)), width
