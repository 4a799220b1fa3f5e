"""The stages are told apart: to draft and mask a tree is one thing, to verify it another."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Stage, StageVerdict, Verdict
from tests.analyzers import fork, inputs, mini, overlay, reports
from tests.renamer import Renamer

_PATHS = (EnginePath.V1, EnginePath.V2)


@pytest.mark.parametrize("renamed", [False, True])
def test_a_fork_that_does_all_four(renamed: bool, tmp_path: Path) -> None:
    walk = inputs.POSITIVES["gather_by_depth"]
    place = _install(tmp_path, mini.files(walk) | fork.files(commits=True), renamed)

    report = reports.inspect(place)

    assert report.verdict is Verdict.TREE
    for path in _PATHS:
        assert reports.stages(report)[path] == dict.fromkeys(Stage, StageVerdict.TREE)


@pytest.mark.parametrize("renamed", [False, True])
def test_a_fork_that_drafts_and_masks_a_tree_and_verifies_a_chain(
    renamed: bool, tmp_path: Path
) -> None:
    chain = inputs.LINEAR["product_along_positions"]
    place = _install(tmp_path, mini.files(chain) | fork.files(commits=False), renamed)

    report = reports.inspect(place)

    assert report.verdict is Verdict.LINEAR
    for path in _PATHS:
        found = reports.stages(report)[path]
        assert found[Stage.DRAFTING] is StageVerdict.TREE
        assert found[Stage.ATTENTION] is StageVerdict.TREE
        assert found[Stage.VERIFICATION] is StageVerdict.LINEAR
        assert found[Stage.COMMIT] is not StageVerdict.TREE


def test_a_walk_without_mask_or_commit_is_still_a_tree_verifier(tmp_path: Path) -> None:
    report = reports.inspect(mini.install(tmp_path, inputs.POSITIVES["gather_by_depth"]))

    assert report.verdict is Verdict.TREE
    for path in _PATHS:
        found = reports.stages(report)[path]
        assert found[Stage.DRAFTING] is not StageVerdict.TREE
        assert found[Stage.ATTENTION] is not StageVerdict.TREE
        assert found[Stage.COMMIT] is not StageVerdict.TREE


def _install(root: Path, files: dict[str, str], renamed: bool) -> Path:
    if renamed:
        files = Renamer(5, strip=True).files(files)
    return overlay.mini_install(root, files)
