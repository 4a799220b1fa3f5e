"""What only sounds or looks like tree verification is never found to be it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from tests import wheels
from tests.analyzers import engines, inputs, mini, overlay, plugins, reports
from tests.renamer import Renamer

_PLACE = "vllm/v1/sample/accept.py"
_PATHS = (EnginePath.V1, EnginePath.V2)
_CHAIN = inputs.LINEAR["product_along_positions"]
_FEW = ["parents_unused", "beams_by_name", "dead_walk"]

_TRIE_DRAFTER = """
from vllm.v1.core.beside import SuffixTrie


class Drafter:
    def __init__(self, model, width):
        self.trie = SuffixTrie()
        self.width = width

    def propose(self, hidden_states, last_tokens):
        drafts = []
        for row in last_tokens.tolist():
            accepted = [token for token in row if token >= 0]
            self.trie.add(accepted)
            drafts.append(self.trie.propose(accepted, self.width))
        return drafts
"""
_ONLY_TYPES = """
from typing import TYPE_CHECKING

from vllm.v1.sample.topology import current
from vllm.v1.sample.chain import verify

if TYPE_CHECKING:
    from vllm.v1.sample.walk import verify as walk


def hook(runner, scheduler_output):
    return None
"""


@pytest.mark.parametrize("name", inputs.LINEAR)
def test_a_chain_in_a_tiny_engine(name: str, tmp_path: Path) -> None:
    report = reports.inspect(mini.install(tmp_path, inputs.LINEAR[name]))

    _assert_linear(report, _PLACE)


@pytest.mark.parametrize("name", inputs.LINEAR)
def test_a_renamed_chain(name: str, tmp_path: Path) -> None:
    renamer = Renamer(3, strip=True)
    files = renamer.files(mini.files(inputs.LINEAR[name]))
    report = reports.inspect(overlay.mini_install(tmp_path, files))

    _assert_linear(report, renamer.path(_PLACE))


@pytest.mark.parametrize("name", _FEW)
def test_a_chain_in_a_real_release(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    place = engines.in_release(base, tmp_path, inputs.LINEAR[name], _PLACE)

    _assert_linear(reports.inspect(place), _PLACE)


@pytest.mark.parametrize("name", inputs.UNCLEAR)
def test_what_cannot_be_read_is_unknown(name: str, tmp_path: Path) -> None:
    report = reports.inspect(mini.install(tmp_path, inputs.UNCLEAR[name]))

    assert report.verdict is Verdict.UNKNOWN
    for path in _PATHS:
        found = reports.by_path(report)[path].stages[Stage.VERIFICATION]
        assert found.verdict is StageVerdict.UNKNOWN
        assert found.reason


@pytest.mark.parametrize("name", inputs.BESIDE)
def test_other_walks_of_the_runner(name: str, tmp_path: Path) -> None:
    report = reports.inspect(mini.install(tmp_path, _CHAIN, {mini.BESIDE: inputs.BESIDE[name]}))

    _assert_linear(report, _PLACE)
    _assert_stock_elsewhere(report)


def test_a_trie_that_only_drafts(tmp_path: Path) -> None:
    files = {mini.BESIDE: inputs.BESIDE["draft_trie"], mini.DRAFTER: _TRIE_DRAFTER}

    report = reports.inspect(mini.install(tmp_path, _CHAIN, files))

    _assert_linear(report, _PLACE)
    _assert_stock_elsewhere(report)


def test_a_walk_that_is_imported_for_its_types_only(tmp_path: Path) -> None:
    files = {
        mini.BESIDE: _ONLY_TYPES,
        "vllm/v1/sample/chain.py": _CHAIN,
        "vllm/v1/sample/walk.py": inputs.POSITIVES["child_map"],
    }

    _assert_linear(reports.inspect(mini.install(tmp_path, _CHAIN, files)), _PLACE)


def test_all_of_them_beside_a_real_release_change_nothing(tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    files = {f"vllm/v1/extra/{name}.py": text for name, text in inputs.BESIDE.items()}
    files |= {f"vllm/v1/sample/{name}.py": text for name, text in inputs.POSITIVES.items()}
    place = overlay.overlay(base, tmp_path, files)

    report = reports.inspect(place)

    assert reports.stages(report) == reports.stages(reports.of_wheel("0.32.0"))
    assert report.verdict is Verdict.LINEAR


@pytest.mark.parametrize("name", ["child_map", "triton_parent_scan"])
def test_dead_code_in_the_verifier_s_own_file(name: str, tmp_path: Path) -> None:
    base = wheels.python_tree(reports.requirement("0.32.0"))
    file = "vllm/v1/sample/rejection_sampler.py"
    dead = inputs.POSITIVES[name].replace("def verify(", "def walk_the_tree(")
    place = overlay.overlay(base, tmp_path, {file: (base / file).read_text() + "\n\n" + dead})

    report = reports.inspect(place)

    assert reports.stages(report) == reports.stages(reports.of_wheel("0.32.0"))
    assert report.verdict is Verdict.LINEAR


@pytest.mark.parametrize("style", plugins.REPLACING)
def test_a_plugin_that_brings_a_chain(style: str, tmp_path: Path) -> None:
    group, modules = plugins.REPLACING[style]
    files = plugins.plugin(group, modules, plugins.CHAIN)

    report = reports.inspect(mini.install(tmp_path, _CHAIN, files))

    assert report.verdict is Verdict.LINEAR
    assert reports.stages(report)[EnginePath.V1][Stage.VERIFICATION] is StageVerdict.LINEAR


@pytest.mark.parametrize("kind", plugins.HARMLESS)
def test_a_plugin_that_leaves_the_verifier_alone(kind: str, tmp_path: Path) -> None:
    files = plugins.plugin(*plugins.HARMLESS[kind], plugins.WALK)

    report = reports.inspect(mini.install(tmp_path, _CHAIN, files))

    _assert_linear(report, _PLACE)


def _assert_linear(report: Report, file: str) -> None:
    assert report.verdict is Verdict.LINEAR, report.summary
    for path in _PATHS:
        result = reports.by_path(report)[path]
        assert result.verdict is Verdict.LINEAR, path
        assert result.stages[Stage.VERIFICATION].verdict is StageVerdict.LINEAR, path
        shown = reports.evidence(report, path, Stage.VERIFICATION)
        supporting = {item.file for item in shown if item.supports is StageVerdict.LINEAR}
        assert file in supporting, shown


def _assert_stock_elsewhere(report: Report) -> None:
    for found in reports.stages(report).values():
        assert StageVerdict.TREE not in found.values()
