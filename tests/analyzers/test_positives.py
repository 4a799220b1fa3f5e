"""Real tree verification is found in every style: in releases, renamed, plugged in."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from tests import wheels
from tests.analyzers import engines, inputs, mini, overlay, plugins, reports
from tests.renamer import Renamer

_PLACE = "vllm/v1/sample/accept.py"
# What the engine's own library does cannot be read from its ops once their names say nothing.
_READABLE = [name for name in inputs.POSITIVES if name != "compiled_op"]
# One on the GPU, one on the host, one vectorised: enough for what varies with the engine only.
_FEW = ["triton_sibling_walk", "child_map", "gather_by_depth"]


@pytest.mark.parametrize("name", inputs.POSITIVES)
def test_in_a_tiny_engine(name: str, tmp_path: Path) -> None:
    report = reports.inspect(mini.install(tmp_path, inputs.POSITIVES[name]))

    _assert_tree(report, _PLACE, EnginePath.V1, EnginePath.V2)


# The walk itself is the same there as in the tiny engine: what differs is the way that leads to it.
@pytest.mark.parametrize("name", [*_FEW, "path_enumeration", "compiled_op"])
def test_in_a_real_release(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = engines.in_release(base, tmp_path, inputs.POSITIVES[name], _PLACE)

    _assert_tree(reports.inspect(place), _PLACE, EnginePath.V1, EnginePath.V2)


@pytest.mark.parametrize("name", _READABLE)
def test_renamed_without_prose(name: str, tmp_path: Path) -> None:
    renamer = Renamer(3, strip=True)
    files = renamer.files(mini.files(inputs.POSITIVES[name]))
    report = reports.inspect(overlay.mini_install(tmp_path, files))

    _assert_tree(report, renamer.path(_PLACE), EnginePath.V1, EnginePath.V2)


def test_a_compiled_op_under_another_name_is_not_called_linear(tmp_path: Path) -> None:
    files = Renamer(3, strip=True).files(mini.files(inputs.POSITIVES["compiled_op"]))

    report = reports.inspect(overlay.mini_install(tmp_path, files))

    assert report.verdict is not Verdict.LINEAR
    for found in reports.stages(report).values():
        assert found[Stage.VERIFICATION] is not StageVerdict.LINEAR


@pytest.mark.parametrize("name", _FEW)
def test_in_an_older_release(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.20.1"))
    place = engines.in_release(base, tmp_path, inputs.POSITIVES[name], _PLACE)

    report = reports.inspect(place)

    _assert_tree(report, _PLACE, EnginePath.V1)
    # The other runner of that release has a verifier of its own, which nobody touched.
    assert reports.stages(report)[EnginePath.V2][Stage.VERIFICATION] is StageVerdict.LINEAR


@pytest.mark.parametrize("name", _FEW)
def test_in_the_v0_engine(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.8.5"))
    place = engines.in_v0(base, tmp_path, inputs.POSITIVES[name], "vllm/spec_decode/accept.py")

    report = reports.inspect(place)

    found = reports.by_path(report)
    assert found[EnginePath.V0].verdict is Verdict.TREE
    assert found[EnginePath.V1].verdict is Verdict.LINEAR


@pytest.mark.parametrize("name", ["child_map", "gather_by_depth"])
def test_with_the_stock_chain_as_a_fallback(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = engines.in_release(base, tmp_path, inputs.POSITIVES[name], _PLACE, keep=True)

    _assert_tree(reports.inspect(place), _PLACE, EnginePath.V1, EnginePath.V2)


@pytest.mark.parametrize("name", ["triton_sibling_walk", "propagate_ok"])
def test_in_the_runner_before_the_stock_sampler(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = engines.in_runner(base, tmp_path, inputs.POSITIVES[name], _PLACE)

    _assert_tree(reports.inspect(place), _PLACE, EnginePath.V1, EnginePath.V2)


@pytest.mark.parametrize("style", plugins.REPLACING)
def test_in_a_plugin_that_replaces_the_verifier(style: str, tmp_path: Path) -> None:
    group, modules = plugins.REPLACING[style]
    files = plugins.plugin(group, modules, plugins.WALK)
    chain = inputs.LINEAR["product_along_positions"]

    report = reports.inspect(mini.install(tmp_path, chain, files))

    _assert_tree(report, "walker/accept.py", EnginePath.V1)
    assert [(plugin.group, plugin.name) for plugin in report.install.plugins] == [(group, "walker")]


@pytest.mark.parametrize("style", ["method", "setattr"])
def test_in_a_plugin_beside_a_real_release(style: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = overlay.overlay(base, tmp_path, plugins.plugin(*plugins.REPLACING[style], plugins.WALK))

    _assert_tree(reports.inspect(place), "walker/accept.py", EnginePath.V1)


def _assert_tree(report: Report, file: str, *paths: EnginePath) -> None:
    assert report.verdict is Verdict.TREE
    for path in paths:
        result = reports.by_path(report)[path]
        assert result.stages[Stage.VERIFICATION].verdict is StageVerdict.TREE, path
        assert result.verdict is Verdict.TREE, path
        shown = reports.evidence(report, path, Stage.VERIFICATION)
        supporting = [item for item in shown if item.supports is StageVerdict.TREE]
        assert file in {item.file for item in supporting}, shown


@pytest.mark.parametrize(
    "call",
    [
        "torch.ops.vllm.settle(tokens, logits.argmax(dim=-1))",
        "getattr(self, '_by_' + metadata.kind)(tokens, logits.argmax(dim=-1))",
        "fastwalk(tokens, logits.argmax(dim=-1))",
        "TABLE[metadata.kind](tokens, logits.argmax(dim=-1))",
    ],
)
def test_a_call_beside_a_chain_that_cannot_be_followed_leaves_it_open(
    call: str, tmp_path: Path
) -> None:
    files = mini.files(inputs.LINEAR["product_along_positions"])
    place = "vllm/v1/sample/rejection_sampler.py"
    head = "import torch\nfrom fastspec import fastwalk\nfrom fastspec import TABLE\n"
    chosen = f"        if metadata.kind:\n            return {call}\n        return "
    source = head + files[place].replace("        return ", chosen)

    report = reports.inspect(overlay.mini_install(tmp_path, files | {place: source}))

    found = reports.by_path(report)[EnginePath.V1].stages[Stage.VERIFICATION]
    assert report.verdict is Verdict.UNKNOWN
    assert found.verdict is StageVerdict.UNKNOWN
    assert "cannot be followed" in found.reason
