"""Compiled libraries are code too: they count where a verifier calls them, and only there."""

from __future__ import annotations

from pathlib import Path

from ddtree.analyzers.result import EnginePath, Report, Stage, StageVerdict, Verdict
from tests.analyzers import elf, inputs, mini, reports

_SYMBOL = "verify_tree_greedy"
_SCHEMA = (
    "verify_tree_greedy(Tensor! predicts, Tensor! accept_index, Tensor! accept_token_num, "
    "Tensor candidates, Tensor retrive_index, Tensor retrive_next_token, "
    "Tensor retrive_next_sibling, Tensor target_predict) -> ()"
)


def test_a_verifier_that_calls_the_library(tmp_path: Path) -> None:
    report = _inspect(tmp_path, inputs.POSITIVES["compiled_op"], [_SYMBOL], [_SCHEMA])

    assert report.verdict is Verdict.TREE
    assert _verification(report) is StageVerdict.TREE


def test_a_library_that_nobody_calls(tmp_path: Path) -> None:
    chain = inputs.LINEAR["product_along_positions"]

    report = _inspect(tmp_path, chain, [_SYMBOL], [_SCHEMA])

    assert report.verdict is Verdict.LINEAR
    assert _verification(report) is StageVerdict.LINEAR


def test_the_written_files_are_elf(tmp_path: Path) -> None:
    data = elf.shared_library(["one", _SYMBOL], [_SCHEMA])

    assert data.startswith(b"\x7fELF")
    assert b"\0one\0verify_tree_greedy\0" in data
    assert _SCHEMA.encode() in data


def _inspect(root: Path, module: str, symbols: list[str], schemas: list[str]) -> Report:
    place = mini.install(root, module)
    (place / "vllm/_C.abi3.so").write_bytes(elf.shared_library(symbols, schemas))
    return reports.inspect(place)


def _verification(report: Report) -> StageVerdict:
    return reports.stages(report)[EnginePath.V1][Stage.VERIFICATION]
