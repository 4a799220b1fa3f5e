"""Walks and forks that lack one part are seen through, whatever else they have."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from tests import wheels
from tests.analyzers import engines, fork, inputs, mini, mutations, overlay, plugins, reports

_PATHS = (EnginePath.V1, EnginePath.V2)
_ALL = dict.fromkeys(Stage, StageVerdict.TREE)
# What a stage is where nothing of a tree is left in it.
_LOST = {
    Stage.DRAFTING: StageVerdict.UNKNOWN,
    Stage.ATTENTION: StageVerdict.UNKNOWN,
    Stage.COMMIT: StageVerdict.ABSENT,
}
# The walk itself makes no difference to what is left of the fork around it.
_FEW = ("gather_by_depth", "triton_sibling_walk", "node_objects")
_KERNEL = "vllm/v1/attention/ops/triton_unified_attention.py"
_BACKEND = "vllm/v1/attention/backends/tree_attn.py"


def inspect(root: Path, files: dict[str, str]) -> Report:
    return reports.inspect(overlay.mini_install(root, files))


def check(report: Report, expected: dict[Stage, StageVerdict]) -> None:
    for path in _PATHS:
        assert reports.stages(report)[path] == expected, path


@pytest.mark.parametrize("walk", inputs.POSITIVES)
def test_the_whole_fork_does_all_four(walk: str, tmp_path: Path) -> None:
    check(inspect(tmp_path, mutations.forked(walk)), _ALL)


@pytest.mark.parametrize("walk", inputs.POSITIVES)
def test_without_its_commit_only_that_is_lost(walk: str, tmp_path: Path) -> None:
    report = inspect(tmp_path, mutations.forked(walk, mutations.FORK["no-commit"]))

    check(report, _ALL | {Stage.COMMIT: StageVerdict.ABSENT})
    assert report.verdict is Verdict.TREE


@pytest.mark.parametrize(
    ("walk", "changes"),
    [
        *((walk, mutations.EQUALITY) for walk in mutations.EQUALITY),
        *((walk, mutations.ELSEWHERE) for walk in mutations.ELSEWHERE),
    ],
    ids=[
        *(f"{walk}-without" for walk in mutations.EQUALITY),
        *(f"{walk}-elsewhere" for walk in mutations.ELSEWHERE),
    ],
)
def test_a_walk_that_does_not_compare_tokens_with_the_targets(
    walk: str, changes: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    report = inspect(tmp_path, mutations.mutated(walk, changes))

    unknown = dict.fromkeys((Stage.VERIFICATION, Stage.COMMIT), StageVerdict.UNKNOWN)
    check(report, _ALL | unknown)
    assert report.verdict is Verdict.UNKNOWN


def test_every_walk_whose_body_can_be_read_is_mutated() -> None:
    assert set(mutations.EQUALITY) == set(inputs.POSITIVES) - {"compiled_op", "foreign_kernel"}


@pytest.mark.parametrize("walk", _FEW)
@pytest.mark.parametrize("part", mutations.FORK)
def test_a_part_that_is_cut_out_is_the_one_that_is_lost(
    part: str, walk: str, tmp_path: Path
) -> None:
    cut = mutations.FORK[part]
    lost = Stage(cut.stage)

    check(inspect(tmp_path, mutations.forked(walk, cut)), _ALL | {lost: _LOST[lost]})


@pytest.mark.parametrize(
    ("place", "walk"), [("in_release", "gather_by_depth"), ("in_runner", "triton_sibling_walk")]
)
def test_a_walk_in_a_real_release_moves_no_rows(place: str, walk: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    put = {"in_release": engines.in_release, "in_runner": engines.in_runner}[place]
    site = put(base, tmp_path, inputs.POSITIVES[walk], "vllm/v1/sample/accept.py")

    for found in reports.stages(reports.inspect(site)).values():
        assert found[Stage.VERIFICATION] is StageVerdict.TREE
        assert found[Stage.COMMIT] is StageVerdict.ABSENT
        assert found[Stage.ATTENTION] is not StageVerdict.TREE


_PLUGIN = """
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from walker.accept import accept
from walker.commit import keep_path


def register():
    stock = GPUModelRunner._sample

    def _sample(self, logits, metadata, *rest):
        if metadata is None:
            return stock(self, logits, metadata, *rest)
        out = accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))
        KEEP
        return out

    GPUModelRunner._sample = _sample
"""


@pytest.mark.parametrize(
    ("keep", "commit"),
    [
        ("keep_path(self.caches.kv_cache, metadata.slots, metadata.path, out.shape[1])", "tree"),
        ("keep_path(self.hidden_states, metadata.slots, metadata.path, out.shape[1])", "absent"),
        ("keep_path(self.caches.kv_cache, metadata.slots, metadata.path, 4)", "absent"),
        ("self.last = out", "absent"),
    ],
)
def test_a_plugin_s_walk_and_its_commit(keep: str, commit: str, tmp_path: Path) -> None:
    modules = {
        "walker/__init__.py": _PLUGIN.replace("KEEP", keep),
        "walker/commit.py": fork.COMMIT,
    }
    brought = plugins.plugin("vllm.general_plugins", modules, plugins.WALK)
    stock = mini.files(inputs.LINEAR["product_along_positions"])

    found = reports.stages(inspect(tmp_path, stock | brought))[EnginePath.V1]

    assert found[Stage.VERIFICATION] is StageVerdict.TREE
    assert found[Stage.COMMIT] == commit


class _Without(ast.NodeTransformer):
    """Takes out of a module what `gone` finds: statements become `pass`, arguments go."""

    def __init__(self, gone: Callable[[ast.AST], bool]) -> None:
        self._gone = gone
        self.found = 0

    def visit(self, node: ast.AST) -> ast.AST | None:
        """One node, or what is left of it."""
        if self._gone(node):
            self.found += 1
            return ast.copy_location(ast.Pass(), node) if isinstance(node, ast.stmt) else None
        return self.generic_visit(node)


def _adds_bias(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) and "bias" in ast.unparse(node.value)


def _hands_bias_on(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and "bias" in ast.unparse(node.value)


@pytest.mark.parametrize(
    ("file", "gone"),
    [(_KERNEL, _adds_bias), (_KERNEL, _hands_bias_on), (_BACKEND, _hands_bias_on)],
    ids=["kernel-adds-nothing", "kernel-is-given-nothing", "backend-hands-nothing-on"],
)
def test_a_real_mask_counts_only_where_it_reaches_scores(
    file: str, gone: Callable[[ast.AST], bool], tmp_path: Path
) -> None:
    """The static mask of TREE_ATTN, whose kernel adds it to the scores."""
    base = wheels.python_tree(reports.requirement("0.20.1"))
    change = _Without(gone)
    tree = ast.parse((base / file).read_text())
    change.visit(tree)
    assert change.found

    found = reports.stages(
        reports.inspect(overlay.overlay(base, tmp_path, {file: ast.unparse(tree)}))
    )

    stock = reports.stages(reports.of_wheel("0.20.1"))[EnginePath.V1]
    assert stock[Stage.ATTENTION] is StageVerdict.TREE
    assert found[EnginePath.V1] == stock | {Stage.ATTENTION: StageVerdict.LINEAR}
