"""Plug-ins that wrap functions of an engine by assignment: ours in real releases, and others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from ddtree.patches.way import Way
from tests.analyzers import inputs, mini, patched, plugins, reports

from .test_patched import LACKING, TREE

HOOKED = "ddtree_plugin/hooked.py"
CHAIN = inputs.LINEAR["product_along_positions"]


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDTREE_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release with the plug-in, for all tests that look at copies of it."""
    root = tmp_path_factory.mktemp("assigned")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DDTREE_STATE", str(root / "state"))
        yield patched.apply("0.32.0", root, Way.PLUGIN)


def v1(report: Report) -> dict[Stage, StageVerdict]:
    return reports.stages(report)[EnginePath.V1]


@pytest.mark.parametrize(
    "version", ["0.20.1", "0.32.0", *(pytest.param(v, marks=pytest.mark.extended) for v in
    ("0.24.0", "0.27.1", "0.30.0", "0.33.0"))],
)  # fmt: skip
def test_a_release_with_the_plug_in_verifies_a_tree(version: str, tmp_path: Path) -> None:
    report = reports.inspect(patched.apply(version, tmp_path, Way.PLUGIN))

    assert v1(report) == TREE
    hooked = Version(version) >= Version("0.24")
    assert (reports.stages(report)[EnginePath.V2] == TREE) is hooked
    assert report.install.modified == ()
    assert any("depends on the configuration" in note for note in report.notes)
    for item in report.evidence:
        assert item.calls[0].file.startswith("vllm/")


# What is taken out of the module of assignments, and the stage that loses its tree.
MISSING = {
    "v1.sample": Stage.VERIFICATION,
    "v1.propose": Stage.DRAFTING,
    "v1.prepare_inputs": Stage.ATTENTION,
}


@pytest.mark.parametrize("hook", MISSING)
def test_an_assignment_that_is_not_made_is_missed(hook: str, site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    lines = (place / HOOKED).read_text().splitlines()
    (line,) = [line for line in lines if f'hook("{hook}")' in line]
    patched.replace(place, HOOKED, f"{line}\n", "")

    report = reports.inspect(place)

    assert v1(report)[MISSING[hook]] is not StageVerdict.TREE
    assert reports.stages(report)[EnginePath.V2] == TREE


def test_layers_that_are_left_alone_attend_without_a_mask(site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    stored = "layer.impl.forward = functools.partial(layer_forward, layer.impl.forward, name)"
    patched.replace(place, "ddtree_runtime/attention.py", stored, "del name")

    found = v1(reports.inspect(place))

    assert found == TREE | {Stage.ATTENTION: found[Stage.ATTENTION]}
    assert found[Stage.ATTENTION] is not StageVerdict.TREE


@pytest.mark.parametrize("part", ["walk", "commit"])
def test_a_runtime_that_lacks_a_part_is_seen_through(part: str, site: Path, tmp_path: Path) -> None:
    stage, file, old, new = LACKING[part]
    place = patched.copy_of(site, tmp_path)
    patched.replace(place, file, old, new)

    found = v1(reports.inspect(place))

    assert found[stage] is not StageVerdict.TREE


def test_a_module_of_assignments_that_nothing_runs_is_no_tree(site: Path, tmp_path: Path) -> None:
    place = patched.copy_of(site, tmp_path)
    patched.replace(place, "ddtree_plugin/__init__.py", "        from .assign import start\n", "")

    report = reports.inspect(place)

    # What finds modules is still put before Python's own, and nothing tells what it gives.
    assert report.verdict is Verdict.UNKNOWN
    for path in report.paths:
        assert "ddtree_plugin/__init__.py:" in path.stages[Stage.VERIFICATION].reason


_WRAPPING = """
import functools

from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from walker.accept import accept


def walking(stock):
    @functools.wraps(stock)
    def sample(self, logits, metadata, *rest):
        if metadata is None:
            return stock(self, logits, metadata, *rest)
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

    return sample


def timed(stock):
    def sample(self, *arguments):
        return stock(self, *arguments)

    return sample


def register():
    GPUModelRunner._sample = {wrap}(GPUModelRunner._sample)
"""
_BOTH = """

def elsewhere():
    from vllm.v1.sample.rejection_sampler import RejectionSampler

    def forward(self, metadata, logits, *rest):
        return accept(metadata.parents, metadata.draft_token_ids, logits.argmax(dim=-1))

    RejectionSampler.forward = forward
"""


def walker(tmp_path: Path, text: str, accept: str = plugins.WALK) -> Report:
    modules = {"walker/__init__.py": text}
    files = plugins.plugin("vllm.general_plugins", modules, accept)
    return reports.inspect(mini.install(tmp_path, CHAIN, files))


def test_whoever_wraps_a_sampler_with_a_walk_is_followed(tmp_path: Path) -> None:
    report = walker(tmp_path, _WRAPPING.format(wrap="walking"))

    assert v1(report)[Stage.VERIFICATION] is StageVerdict.TREE
    (shown,) = reports.evidence(report, EnginePath.V1, Stage.VERIFICATION)
    assert shown.file == "walker/accept.py"


def test_whoever_wraps_it_with_a_chain_is_none(tmp_path: Path) -> None:
    report = walker(tmp_path, _WRAPPING.format(wrap="walking"), plugins.CHAIN)

    assert v1(report)[Stage.VERIFICATION] is not StageVerdict.TREE


def test_whoever_wraps_it_with_nothing_stays_a_chain(tmp_path: Path) -> None:
    """Although a walk lies in the same module."""
    report = walker(tmp_path, _WRAPPING.format(wrap="timed"))

    assert v1(report)[Stage.VERIFICATION] is StageVerdict.LINEAR


def test_a_verifier_that_is_replaced_beside_a_harmless_wrap_is_found(tmp_path: Path) -> None:
    text = _WRAPPING.format(wrap="timed").replace("register():", "register():\n    elsewhere()")

    report = walker(tmp_path, text + _BOTH)

    assert v1(report)[Stage.VERIFICATION] is StageVerdict.TREE
