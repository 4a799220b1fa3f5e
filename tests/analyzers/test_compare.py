"""A comparison matches evidence by meaning and reports only what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddtree.analyzers.compare import FactChange, SetChange, compare
from ddtree.analyzers.result import EnginePath, Stage, StageVerdict, Verdict

from ..cli.samples import REPORTS, evidence, install, report, tree_report


@pytest.mark.parametrize("name", REPORTS)
def test_an_install_does_not_differ_from_itself(name: str) -> None:
    same = compare(REPORTS[name](), REPORTS[name]())
    assert not any(path.changed for path in same.paths)
    assert (same.lost, same.gained, same.moved) == ((), (), ())
    assert (same.methods, same.facts, same.lists) == ((), (), ())


def test_verdicts_stand_side_by_side_for_every_path_of_either_side() -> None:
    result = compare(report(), tree_report())
    v1, v2 = result.paths
    assert (v1.path, v1.before, v1.after) == (EnginePath.V1, Verdict.LINEAR, None)
    assert (v2.path, v2.before, v2.after) == (EnginePath.V2, Verdict.LINEAR, Verdict.TREE)
    stages = {stage.stage: (stage.before, stage.after) for stage in v2.stages}
    assert stages[Stage.VERIFICATION] == (StageVerdict.LINEAR, StageVerdict.TREE)
    assert [stage.stage for stage in v2.stages if stage.changed] == [Stage.VERIFICATION]
    assert v1.changed
    assert [stage.after for stage in v1.stages] == [None] * 4


def test_the_summary_says_what_is_given_and_taken_away() -> None:
    gains = compare(report(), tree_report()).summary
    assert gains == "verification: linear -> tree; gives tree verification (v2-runner)"
    loses = compare(tree_report(), report()).summary
    assert loses == "verification: tree -> linear; takes away tree verification (v2-runner)"
    assert compare(report(), report()).summary == "verification stays linear"


def test_a_change_of_the_default_alone_is_a_change() -> None:
    one = report()
    other = replace(one, paths=tuple(replace(path, default=False) for path in one.paths))
    assert all(path.changed for path in compare(one, other).paths)


def test_another_line_or_file_is_a_move() -> None:
    one = evidence(1)
    for changes in ({"line": 500}, {"file": "vllm/elsewhere.py"}, {"column": 9}):
        result = compare(report(evidence=(one,)), report(evidence=(evidence(7, **changes),)))
        assert [(m.before.id, m.after.id) for m in result.moved] == [("E1", "E7")]
        assert (result.lost, result.gained) == ((), ())


def test_another_id_is_nothing() -> None:
    result = compare(report(evidence=(evidence(1),)), report(evidence=(evidence(9),)))
    assert (result.lost, result.gained, result.moved) == ((), (), ())


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": "other"},
        {"symbol": "other"},
        {"stage": Stage.COMMIT},
        {"path": EnginePath.V0},
    ],
)
def test_another_meaning_is_lost_and_gained(changes: dict[str, object]) -> None:
    one, other = evidence(1), evidence(1, **changes)
    result = compare(report(evidence=(one,)), report(evidence=(other,)))
    assert (result.lost, result.gained, result.moved) == ((one,), (other,), ())


def test_a_twin_that_appears_above_is_gained_and_moves_nobody() -> None:
    old, twin = evidence(1, line=50), evidence(1, line=20)
    result = compare(report(evidence=(old,)), report(evidence=(twin, replace(old, id="E2"))))
    assert result.gained == (twin,)
    assert (result.lost, result.moved) == ((), ())


def test_methods_and_facts_list_only_what_differs() -> None:
    result = compare(report(), tree_report())
    assert result.methods == (
        SetChange("speculative", ("ngram",), ("ddtree",)),
        SetChange("rejection", ("standard",), ("strict",)),
    )
    assert result.facts == (FactChange("version", "0.24.0", "0.25.0"),)
    lists = {change.name: change for change in result.lists}
    assert lists["plugins"].lost == ("vllm.general_plugins: trees = treepkg:register",)
    assert len(lists["modified"].lost) == 5
    assert "extra" not in lists


def test_a_fact_that_appears_is_gained() -> None:
    result = compare(report(), report(install=install(triton="3.5.0")))
    assert result.facts == (FactChange("triton", None, "3.5.0"),)
