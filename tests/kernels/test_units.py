"""Every unit below `kernels/tree` keeps the rules that make it readable, testable and portable.

The tests are generated from the folders, so a new unit is checked without an edit here.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
TREE = KERNELS / "tree"
UNITS = sorted(init.parent.name for init in TREE.glob("*/__init__.py"))
KERNEL_UNITS = sorted(kernel.parent.name for kernel in TREE.glob("*/kernel.py"))
HEADINGS = ("## Maths", "## Shapes", "## Complexity", "## Source")
# `kernel.py` is copied into an engine byte for byte: what it imports has to be there.
PORTABLE = frozenset({"torch", "triton", "typing", "__future__"})
# Inside `kernels` the project's own modules are imported relatively, and only those below it.
FOLDERS = frozenset({"ddtree", "cli", "analyzers", "patches", "kernels"})


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Level (0 for absolute) and module of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def unportable(source: str) -> list[str]:
    """Imports that a file which travels alone must not have."""
    return [
        "." * level + module
        for level, module in imported(source)
        if level or module.split(".")[0] not in PORTABLE
    ]


def leaves_kernels(source: str, depth: int) -> list[str]:
    """Imports of the project's other folders by a file `depth` folders below `kernels`."""
    # The file's own package is one level, so `depth + 1` dots are `kernels` itself.
    return [
        "." * level + module
        for level, module in imported(source)
        if level > depth + 1 or module.split(".")[0] in FOLDERS
    ]


def jitted(source: str) -> dict[str, ast.FunctionDef]:
    """The functions of a file that Triton compiles."""
    return {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and any("triton.jit" in ast.unparse(mark) for mark in node.decorator_list)
    }


def entries(source: str) -> set[str]:
    """Jitted functions that no other jitted function of the file calls: those that are launched."""
    functions = jitted(source)
    called = {
        node.func.id
        for function in functions.values()
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return set(functions) - called


def argument_problems(source: str, name: str, pointers: set[str]) -> list[str]:
    """What is wrong with the arguments of one launched kernel; `pointers` are those it is given."""
    lines = source.splitlines()
    problems = []
    ranks = []
    for argument in jitted(source)[name].args.args:
        constant = argument.annotation is not None and "constexpr" in ast.unparse(
            argument.annotation
        )
        pointer = argument.arg.endswith("_ptr")
        ranks.append(2 if constant else int(not pointer))
        if pointer != (argument.arg in pointers):
            problems.append(f"{argument.arg}: `_ptr` is for pointers, and for all of them")
        if constant and not re.fullmatch(r"[A-Z][A-Z0-9_]*", argument.arg):
            problems.append(f"{argument.arg}: a compile-time argument is written in capitals")
        if pointer and not re.search(r"# .*\w", lines[argument.lineno - 1]):
            problems.append(f"{argument.arg}: no comment gives its shape")
    if ranks != sorted(ranks):
        problems.append("the order is not pointers, numbers, compile-time arguments")
    return problems


def missing_headings(readme: str) -> list[str]:
    """Required headings that are absent or have no text below them."""
    parts = re.split(r"^(## .+?)\s*$", readme, flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    return [heading for heading in HEADINGS if not texts.get(heading, "").strip()]


def variants_of(unit: str) -> Any:
    """The unit's `VARIANTS`."""
    return importlib.import_module(f"ddtree.kernels.tree.{unit}.variants").VARIANTS


def test_there_are_units() -> None:
    assert {"build", "walk", "ancestors", "commit", "attention"} <= set(KERNEL_UNITS)
    assert set(KERNEL_UNITS) <= set(UNITS)


@pytest.mark.parametrize("unit", UNITS)
def test_unit_has_its_files(unit: str) -> None:
    expected = [
        TREE / unit / "reference.py",
        TREE / unit / "README.md",
        ROOT / "tests" / "kernels" / f"test_{unit}.py",
    ]
    if unit in KERNEL_UNITS:
        expected += [
            TREE / unit / "variants.py",
            ROOT / "benchmarks" / "kernel_cases" / f"{unit}.py",
        ]
    assert [str(path.relative_to(ROOT)) for path in expected if not path.is_file()] == []


@pytest.mark.parametrize("unit", UNITS)
def test_readme_gives_maths_shapes_complexity_and_source(unit: str) -> None:
    assert missing_headings((TREE / unit / "README.md").read_text()) == []


@pytest.mark.parametrize("unit", KERNEL_UNITS)
def test_kernel_travels_alone(unit: str) -> None:
    assert unportable((TREE / unit / "kernel.py").read_text()) == []


@pytest.mark.parametrize("unit", KERNEL_UNITS)
def test_every_launched_kernel_is_compiled_ahead_of_time(unit: str) -> None:
    compiled = {variant.kernel.__name__ for variant in variants_of(unit)}
    assert compiled == entries((TREE / unit / "kernel.py").read_text())


@pytest.mark.parametrize("unit", KERNEL_UNITS)
def test_kernel_arguments(unit: str) -> None:
    source = (TREE / unit / "kernel.py").read_text()
    pointers: dict[str, set[str]] = {}
    for variant in variants_of(unit):
        given = {name for name, kind in variant.signature.items() if kind.startswith("*")}
        # A pointer that a launch may leave out is `None`, which is a constant of that launch.
        left_out = {name for name, value in variant.constexprs.items() if value is None}
        pointers.setdefault(variant.kernel.__name__, set()).update(given | left_out)
    problems = {name: argument_problems(source, name, pointers[name]) for name in pointers}
    assert {name: found for name, found in problems.items() if found} == {}


@pytest.mark.parametrize(
    "path", sorted(KERNELS.rglob("*.py")), ids=lambda path: str(path.relative_to(KERNELS))
)
def test_kernels_import_no_other_folder(path: Path) -> None:
    depth = len(path.relative_to(KERNELS).parts) - 1
    assert leaves_kernels(path.read_text(), depth) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import torch\nimport triton.language as tl\nfrom __future__ import annotations", []),
        ("import numpy", ["numpy"]),
        ("import math", ["math"]),
        ("from . import other", ["."]),
        ("from ..checks import tensor", ["..checks"]),
        ("def f():\n    from vllm.utils import cdiv", ["vllm.utils"]),
        ("import torchvision", ["torchvision"]),
    ],
)
def test_unportable_imports_are_found(source: str, found: list[str]) -> None:
    assert unportable(source) == found


@pytest.mark.parametrize(
    ("source", "depth", "found"),
    [
        ("from ...compile import Variant", 2, []),
        ("from ....cli import app", 2, ["....cli"]),
        ("from ..patches import plan", 0, ["..patches"]),
        ("from . import usage", 0, []),
        ("from ddtree.cli import app", 0, ["ddtree.cli"]),
        ("def f():\n    import analyzers.rules", 1, ["analyzers.rules"]),
    ],
)
def test_imports_of_other_folders_are_found(source: str, depth: int, found: list[str]) -> None:
    assert leaves_kernels(source, depth) == found


GOOD = """
@triton.jit
def _helper(x): return x

@triton.jit(do_not_specialize=["size"])
def kernel(
    out_ptr,  # [R, N] int32
    size,
    BLOCK_N: tl.constexpr,
):
    _helper(size)
"""


def test_entries_are_what_is_launched() -> None:
    assert entries(GOOD) == {"kernel"}
    assert set(jitted(GOOD)) == {"kernel", "_helper"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "", None),
        ("  # [R, N] int32", "", "no comment gives its shape"),
        ("out_ptr,  # [R, N] int32", "out,", "for pointers, and for all of them"),
        ("size,", "size_ptr,  # a number", "for pointers, and for all of them"),
        ("BLOCK_N", "block_n", "written in capitals"),
        ("    size,\n", "", None),
        ("    size,\n    BLOCK_N: tl.constexpr,", "    BLOCK_N: tl.constexpr,\n    size,", "order"),
    ],
)
def test_argument_problems_are_found(old: str, new: str, problem: str | None) -> None:
    pointers = {"out"} if "out," in new else {"out_ptr"}
    found = argument_problems(GOOD.replace(old, new, 1), "kernel", pointers)
    assert (problem is None) == (found == [])
    assert problem is None or any(problem in text for text in found)


def test_missing_headings_are_found() -> None:
    full = "# unit\n" + "".join(f"{heading}\ntext\n" for heading in HEADINGS)
    assert missing_headings(full) == []
    assert missing_headings(full.replace("## Maths", "## Theory")) == ["## Maths"]
    assert missing_headings(full.replace("## Source\ntext", "## Source\n")) == ["## Source"]
