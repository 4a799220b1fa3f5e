"""What is sent runs on Python 3.8: its syntax, its calls, and without anything of ours."""

from __future__ import annotations

import ast
import re
import shlex
import sys

import pytest

from ddtree.analyzers.remote import bundle
from ddtree.analyzers.remote.ask import PROBE
from ddtree.analyzers.remote.far import loader

TEXTS = bundle.texts(PROBE)
# What the modules may import; an older Python has all of it but what the loader brings.
STANDARD = sys.stdlib_module_names - {"tomllib"}
# New in Python 3.9 or later, and easy to write.
_NEWER_NAMES = {
    "removeprefix",
    "removesuffix",
    "is_relative_to",
    "with_stem",
    "readlink",
    "hardlink_to",
    "pairwise",
    "batched",
    "bit_count",
    "randbytes",
    "file_digest",
    "stdlib_module_list",
}
_NEWER_WORDS = {"strict", "kw_only", "missing_ok", "delete_on_close", "usedforsecurity", "walk_up"}


@pytest.mark.parametrize("name", TEXTS)
def test_a_module_is_written_for_python_3_8(name: str) -> None:
    tree = ast.parse(TEXTS[name], feature_version=bundle.OLDEST)

    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match | ast.TryStar), name
        if isinstance(node, ast.Attribute):
            assert node.attr not in _NEWER_NAMES, f"{name}:{node.lineno}: {node.attr}"
        if isinstance(node, ast.Call):
            words = {word.arg for word in node.keywords}
            # `Path.resolve(strict=)` is old; `zip(strict=)` is not.
            if isinstance(node.func, ast.Attribute) and node.func.attr == "resolve":
                words -= {"strict"}
            assert not words & _NEWER_WORDS, f"{name}:{node.lineno}"


@pytest.mark.parametrize("name", TEXTS)
def test_annotations_are_never_evaluated(name: str) -> None:
    tree = ast.parse(TEXTS[name])
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    lazy = any(
        node.module == "__future__" and node.names[0].name == "annotations" for node in imports
    )

    annotated = any(isinstance(node, ast.AnnAssign | ast.arg) for node in ast.walk(tree))
    assert lazy or not annotated


@pytest.mark.parametrize("name", TEXTS)
def test_types_are_not_joined_when_it_runs(name: str) -> None:
    """`isinstance(x, A | B)` and aliases such as `A | None` are evaluated, and new in 3.10."""
    calls = [node for node in ast.walk(ast.parse(TEXTS[name])) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in {"isinstance", "issubclass"}:
            assert not isinstance(call.args[1], ast.BinOp), f"{name}:{call.lineno}"


@pytest.mark.parametrize("name", TEXTS)
def test_only_the_standard_library_is_imported(name: str) -> None:
    for node in ast.parse(TEXTS[name]).body:
        if isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= STANDARD
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert node.module is not None
            assert node.module.partition(".")[0] in STANDARD


def test_the_bundle_is_what_is_needed_and_no_more() -> None:
    names = {name.removesuffix(".") for name in TEXTS}

    assert "ddtree.analyzers.remote.far.answer" in names
    assert "ddtree.analyzers.targets.assemble" in names
    assert not {name for name in names if re.search(r"packed|requirement|study|rules|ssh", name)}


def test_the_line_is_one_and_plain() -> None:
    line = bundle.line({"python": None, "token": "0" * 16, "more": []}, PROBE)

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert line.isascii()
    assert len(line) < 64 << 10


def test_every_login_shell_takes_the_command_as_one_line() -> None:
    words = bundle.command("/opt/it's here/python", "0" * 16)

    # csh expands `!` even within quotes, and breaks at newlines.
    assert not re.search(r"[!\n]", shlex.join(words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[project]\nname = \"a\" # x\nversion = '1'\n", {"name": "a", "version": "1"}),
        ('[other]\nname = "b"\n[project]\nname="a"\n[project.urls]\nx = "y"\n', {"name": "a"}),
        ('[project]\nname = """a"""\ndynamic = ["version"]\nn = 1\n', {}),
        ("", {}),
    ],
)
def test_a_project_table_is_read_without_tomllib(text: str, expected: dict[str, str]) -> None:
    assert loader.project(text) == {"project": expected}
