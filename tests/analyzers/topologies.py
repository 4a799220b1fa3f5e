"""Random draft trees in every form that an input of the tests walks, and the plain walk itself."""

from __future__ import annotations

import random
from typing import Any

import torch


def step(seed: int, rows: int = 5, nodes: int = 9) -> dict[str, Any]:
    """One verification step: trees over few tokens, so that long paths and misses both occur."""
    source = random.Random(seed)
    parents, tokens = zip(*(_tree(source, nodes) for _ in range(rows)), strict=True)
    target = [[source.randrange(3) for _ in range(nodes)] for _ in range(rows)]
    forms = {
        "parents": torch.tensor(parents),
        "tokens": torch.tensor(tokens),
        "target": torch.tensor(target),
        "depths": torch.tensor(
            [[len(_path(up, node)) - 1 for node in range(nodes)] for up in parents]
        ),
    }
    return forms | _linked(parents, nodes) | _mapped(parents, tokens) | _chosen(target)


def expected(forms: dict[str, Any]) -> torch.Tensor:
    """What every `verify` must give: the target's tokens along the accepted path, then -1."""
    out = torch.full_like(forms["target"], -1)
    for row, target in enumerate(forms["target"].tolist()):
        path = [0]
        while (child := forms["children"][row][path[-1]].get(target[path[-1]])) is not None:
            path.append(child)
        out[row, : len(path)] = forms["target"][row, path]
    return out


def _tree(source: random.Random, nodes: int) -> tuple[list[int], list[int]]:
    parents, tokens = [-1], [0]
    while len(parents) < nodes:
        parent, token = source.randrange(len(parents)), source.randrange(3)
        # Siblings carry different tokens, so that the walk is unique.
        if (parent, token) not in zip(parents[1:], tokens[1:], strict=True):
            parents.append(parent)
            tokens.append(token)
    return parents, tokens


def _path(parents: list[int], node: int) -> list[int]:
    return [node] if node == 0 else [*_path(parents, parents[node]), node]


def _lists(parents: list[int]) -> list[list[int]]:
    return [
        [child for child, parent in enumerate(parents) if parent == node]
        for node in range(len(parents))
    ]


def _linked(parents: tuple[list[int], ...], nodes: int) -> dict[str, Any]:
    first = torch.full((len(parents), nodes), -1)
    right = torch.full_like(first, -1)
    table = torch.full((len(parents), nodes, 3), -1)
    ancestors = torch.zeros(len(parents), nodes, nodes, dtype=torch.bool)
    paths = []
    for row, up in enumerate(parents):
        lists = _lists(up)
        for node, below in enumerate(lists):
            ancestors[row, node, _path(up, node)] = True
            table[row, node, : len(below)] = torch.tensor(below, dtype=torch.long)
            for left, child in zip([None, *below], below, strict=False):
                (first if left is None else right)[row, node if left is None else left] = child
        leaves = [node for node, below in enumerate(lists) if not below]
        padded = [_path(up, leaf) + [-1] * nodes for leaf in leaves]
        paths.append(torch.tensor([path[:nodes] for path in padded]))
    linked = {"first_child": first, "next_sibling": right, "child_table": table}
    return linked | {"ancestors": ancestors, "paths": paths}


def _mapped(parents: tuple[list[int], ...], tokens: tuple[list[int], ...]) -> dict[str, Any]:
    lists = [_lists(up) for up in parents]
    maps = [
        [{token[child]: child for child in below} for below in row]
        for row, token in zip(lists, tokens, strict=True)
    ]
    flat = [
        {(node, token): child for node, below in enumerate(row) for token, child in below.items()}
        for row in maps
    ]
    return {
        "child_lists": lists,
        "children": maps,
        "child_of": flat,
        "trie": [_trie(row, 0) for row in maps],
        "roots": [_Node(row, 0) for row in maps],
    }


def _trie(children: list[dict[int, int]], node: int) -> dict[int, Any]:
    return {token: (child, _trie(children, child)) for token, child in children[node].items()}


class _Node:
    def __init__(self, children: list[dict[int, int]], row: int) -> None:
        self.row = row
        self.children = {token: _Node(children, child) for token, child in children[row].items()}


def _chosen(target: list[list[int]]) -> dict[str, Any]:
    # With all of the mass on one token, a coin in (0, 1) accepts that token and no other.
    probs = torch.nn.functional.one_hot(torch.tensor(target), 3).float()
    return {"probs": probs, "coins": torch.full(probs.shape[:2], 0.5)}
