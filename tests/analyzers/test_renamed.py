"""Names and versions decide nothing: the same code under other words gives the same verdicts."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from ddtree.analyzers.result import EnginePath, Evidence, Report, Stage
from tests import wheels
from tests.analyzers import overlay, reports
from tests.analyzers.reports import RELEASES
from tests.renamer import WORDS, Renamer, renamed_tree

_SEED = 7
# Without comments and docstrings either, where the releases' code differs most.
_STRIPPED = ("0.8.5", "0.20.1", "0.32.0")
_CASES = [(version, False) for version in RELEASES] + [(version, True) for version in _STRIPPED]


@pytest.mark.parametrize(("version", "strip"), _CASES)
def test_a_renamed_release_has_the_same_verdicts(version: str, strip: bool) -> None:
    renamed = reports.of_renamed(version, _SEED, strip)
    plain = reports.of_wheel(version)

    assert reports.stages(renamed) == reports.stages(plain)
    assert renamed.verdict is plain.verdict
    assert _defaults(renamed) == _defaults(plain)


@pytest.mark.parametrize(("version", "strip"), _CASES)
def test_a_renamed_release_has_the_same_proofs(version: str, strip: bool) -> None:
    renamed = reports.of_renamed(version, _SEED, strip)
    plain = reports.of_wheel(version)
    renamer = Renamer(_SEED)

    for result in plain.paths:
        expected = {
            (renamer.path(item.file), item.line)
            for item in _of_python(plain, result.path, Stage.VERIFICATION)
        }
        shown = _of_python(renamed, result.path, Stage.VERIFICATION)
        assert {(item.file, item.line) for item in shown} == expected


@pytest.mark.parametrize("version", ["0.20.1", "0.32.0"])
def test_another_version_and_distribution_have_the_same_verdicts(
    version: str, tmp_path: Path
) -> None:
    tree = wheels.python_tree(reports.requirement(version))
    place = overlay.overlay(tree, tmp_path)
    (metadata,) = place.glob("*.dist-info")
    shutil.rmtree(metadata)
    files = overlay.distribution("some-fork", "99.1.0")
    for path, text in (files | {"vllm/_version.py": "__version__ = '99.1.0'\n"}).items():
        overlay.write(place, path, text)

    report = reports.inspect(place)

    assert reports.stages(report) == reports.stages(reports.of_wheel(version))
    assert report.verdict is reports.of_wheel(version).verdict
    assert _defaults(report) == _defaults(reports.of_wheel(version))


def test_a_renamed_release_is_python_without_the_words() -> None:
    tree = renamed_tree(reports.requirement("0.8.5"), Renamer(_SEED, strip=True))

    for path in tree.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_bytes()))
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        names = {node.name.lower() for node in nodes if isinstance(node, defined)}
        assert not {part for name in names for part in name.split("_")} & set(WORDS), path
    assert not list(tree.rglob("*rejection*"))


def test_renaming_keeps_lines_and_what_is_not_a_whole_word() -> None:
    renamer = Renamer(_SEED)
    text = b"class TreeSpec:\n    parent_ids = treeless = 1  # the draft\n    JSONTree.PARENT_ID\n"
    tree, spec, parent = (renamer.words[word] for word in ("tree", "spec", "parent"))

    lines = renamer.code(text).decode().splitlines()

    assert lines[0] == f"class {tree.capitalize()}{spec.capitalize()}:"
    assert lines[1].startswith(f"    {parent}_ids = treeless = 1  # the ")
    assert lines[2] == f"    JSON{tree.capitalize()}.{parent.upper()}_ID"


def test_stripping_blanks_prose_and_keeps_lines() -> None:
    text = b'def f():\n    """Two\n    lines."""\n    return "# not one"  # one\n'

    assert Renamer(_SEED, strip=True).code(text) == (
        b'def f():\n    ""\n\n    return "# not one"  \n'
    )


def _defaults(report: Report) -> dict[EnginePath, bool | None]:
    return {result.path: result.default for result in report.paths}


def _of_python(report: Report, path: EnginePath, stage: Stage) -> list[Evidence]:
    # The wheel also carries compiled libraries, which the renamed files lack.
    shown = reports.evidence(report, path, stage)
    return [item for item in shown if item.file.endswith(".py")]
