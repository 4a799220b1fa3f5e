"""L1 and L2 pass on the runtime as it is, and notice when a part of it is another one."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ddtree.patches.verify.harness import events, l1, l2, plain, trees
from ddtree.patches.verify.harness.check import check, differ

Results = dict[str, dict[str, Any]]


def run(level: Any, monkeypatch: pytest.MonkeyPatch) -> Results:
    """The checks of a level by name."""
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(
        events, "emit", lambda kind, **fields: sent.append({"kind": kind, **fields})
    )
    part = level.__name__.rpartition(".")[2].upper()
    level.run({"seed": 3, "levels": [part]}, Path(), part)
    (found,) = (event["checks"] for event in sent if event["kind"] == "checks")
    return {one["name"]: one for one in found}


def unit(name: str) -> Any:
    return importlib.import_module(f"ddtree_runtime.kernels.tree.{name}")


def failed(results: Results) -> set[str]:
    return {name for name, one in results.items() if not one["passed"]}


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("level", [l1, l2])
def test_the_runtime_passes(level: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check was made on something."""
    results = run(level, monkeypatch)
    assert failed(results) == set()
    assert len(results) >= 5
    assert all(int(one["detail"].split()[0]) > 2 for one in results.values())


def any_sibling(walk: Callable[..., Any]) -> Callable[..., Any]:
    """A walk that takes the first child of the root, whatever its token."""

    def wrong(target: Any, tokens: Any, parents: Any, count: Any, **named: Any) -> Any:
        changed = target.clone()
        if named.get("row_start") is None and tokens.shape[1]:
            changed[:, 0] = torch.where(count > 0, tokens[:, 0].to(target.dtype), target[:, 0])
        return walk(changed, tokens, parents, count, **named)

    return wrong


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("level", [l1, l2])
def test_a_wrong_walk_is_noticed(level: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the checks of the walk fail."""
    module = unit("walk")
    monkeypatch.setattr(module, "walk", any_sibling(module.walk))
    wrong = failed(run(level, monkeypatch))
    assert wrong
    assert all(name.startswith("walk") for name in wrong)


@pytest.mark.usefixtures("runtime")
def test_a_wrong_build_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that takes the chain of best candidates first is not the heap's."""
    module = unit("build")
    build = module.build
    monkeypatch.setattr(module, "build", lambda *a, **k: build(*a, **k, spine_first=True))
    assert failed(run(l1, monkeypatch)) == {"build", "ties"}


@pytest.mark.usefixtures("runtime")
def test_a_wrong_attention_a_wrong_commit_and_a_wrong_mask_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Causal attention, a commit that does nothing, a mask without the root."""
    attention, commit, ancestors = unit("attention"), unit("commit"), unit("ancestors")
    attend, mask = attention.tree_attention, ancestors.ancestors

    def causal(*args: Any, **named: Any) -> Any:
        return attend(*args[:-1], torch.ones_like(args[-1]), **named)

    def rootless(*args: Any, **named: Any) -> Any:
        found = mask(*args, **named)
        return found._replace(visible=found.visible & ~1)

    monkeypatch.setattr(attention, "tree_attention", causal)
    monkeypatch.setattr(commit, "commit", lambda *_, **__: None)
    monkeypatch.setattr(ancestors, "ancestors", rootless)
    wrong = failed(run(l2, monkeypatch))
    assert {name.partition(",")[0] for name in wrong} == {"ancestors", "commit", "attention"}


def test_the_plain_walk_by_hand() -> None:
    """Root, a wrong child, a right one, its child; and of equal siblings the lower."""
    assert plain.walk([5, 0, 7, 9], [4, 5, 7], [0, 0, 2]) == [0, 2, 3]
    assert plain.walk([5, 1, 1], [5, 5], [0, 0]) == [0, 1]
    assert plain.walk([5], [], []) == [0]
    assert plain.permutation([0, 2, 3], 4, 5) == [0, 2, 3, 1, 4, 5]
    assert plain.moved([10, 11, 12, 13], [0, 2, 3]) == [10, 12, 13, 13]
    assert plain.sees([0, 0, 2]) == [{0}, {0, 1}, {0, 2}, {0, 2, 3}]


def test_the_plain_heap_by_hand() -> None:
    """Two positions of two candidates."""
    positions = [[(1, 0.5), (2, 1.0)], [(3, 0.25), (4, 4.0)]]
    assert list(plain.best(positions, 3)) == [(1,), (1, 3), (2,)]
    assert len(plain.best(positions, 100)) == 6


def test_every_shape_is_a_tree_and_most_targets_follow_it() -> None:
    """A walk that always stops at the root would pass few of these."""
    batch = trees.cases(random.Random(0), 33, 40)
    lengths = [len(plain.walk(case.target, case.tokens, case.parents)) - 1 for case in batch]
    assert all(0 <= parent <= node for case in batch for node, parent in enumerate(case.parents))
    assert sum(length > 0 for length in lengths) > len(batch) // 2
    assert max(lengths) > 3


def test_a_check_of_nothing_does_not_pass_and_an_exception_fails() -> None:
    """A check says which case was wrong."""

    def broken() -> None:
        raise KeyError("slot")

    assert check("a", [], "cases")["passed"] is False
    found = check("b", [lambda: None, broken, lambda: None], "cases")
    assert found == {"name": "b", "passed": False, "detail": "cases number 2: KeyError: 'slot'"}
    assert differ([1], [1]) is None
    assert differ(1, 2) == "found 1, expected 2"
