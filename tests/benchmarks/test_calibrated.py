"""The proposer whose candidates are right as often as it says."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .load import load

calibrated: Any = load("engine_cases.far.calibrated")
RANKS = [0.5, 0.2, 0.1]
VOCABULARY = 50


def proposer(folder: Path, known: list[list[int]], nodes: int, depth: int) -> Any:
    """A proposer that has read its file in `folder`, the working directory."""
    given = {
        "known": known,
        "vocabulary": VOCABULARY,
        "depth": depth,
        "nodes": nodes,
        "ranks": RANKS,
    }
    (folder / "calibrated.json").write_text(json.dumps(given))
    return calibrated.Calibrated(None)


@pytest.mark.parametrize("nodes", [1, 2, 7, 30, 39])
def test_best_first_takes_the_most_probable_prefixes(nodes: int) -> None:
    depth = 3
    every = [path for n in range(1, depth + 1) for path in itertools.product(range(3), repeat=n)]
    weights = sorted((math.prod(RANKS[rank] for rank in path) for path in every), reverse=True)
    shape = calibrated.best_first(RANKS, depth, nodes)
    assert len(shape) == nodes
    paths: list[tuple[int, ...]] = [()]
    for parent, level, rank in shape:
        assert parent < len(paths)
        paths.append((*paths[parent], rank))
        assert level == len(paths[-1])
    assert len(set(paths)) == len(paths)
    taken = [math.prod(RANKS[rank] for rank in path) for path in paths[1:]]
    assert taken == pytest.approx(weights[:nodes])


def test_no_nodes_is_the_chain_of_the_best() -> None:
    assert calibrated.best_first(RANKS, 3, 0) == [(0, 1, 0), (1, 2, 0), (2, 3, 0)]


def test_candidates_are_distinct_and_right_as_often_as_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = [[request, *(7 * place % VOCABULARY for place in range(999))] for request in range(4)]
    made = proposer(tmp_path, known, 0, 3)
    hits = [0] * len(RANKS)
    for text in known:
        for place in range(8, len(text)):
            line = made.candidates(text, place)
            assert len(set(line)) == len(RANKS)
            if text[place] in line:
                hits[line.index(text[place])] += 1
    drawn = len(known) * (1000 - 8)
    for hit, share in zip(hits, RANKS, strict=True):
        # Five standard deviations of a binomial count.
        assert abs(hit - drawn * share) < 5 * math.sqrt(drawn * share * (1 - share))


def test_chain_and_tree_meet_the_same_luck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = [[place % VOCABULARY for place in range(40)]]
    tokens = np.array(known)
    chain = proposer(tmp_path, known, 0, 3)
    tree = proposer(tmp_path, known, 12, 3)
    for length in (10, 11, 12):
        ((*drafts,),) = chain.propose([[1]], [length], tokens)
        (nodes,) = tree.propose([[1]], [length], tokens)
        assert chain.draft_parents == [[0, 1, 2]]
        (parents,) = tree.draft_parents
        first = 0
        for token in drafts:
            children = [node for node, parent in enumerate(parents) if parent == first]
            assert nodes[children[0]] == token
            assert len({nodes[child] for child in children}) == len(children)
            first = children[0] + 1
    assert tree.propose([[]], [12], tokens) == [[]]
    assert tree.draft_parents == [[]]
