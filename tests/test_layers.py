"""Who may import whom, and what no file of the checkout may hold or become."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests import checkout

PACKAGE = "ddtree"
# The four folders, each with those of the others that it may import.
ALLOWED = {
    "kernels": set(),
    "analyzers": set(),
    "patches": {"analyzers", "kernels"},
    "cli": {"analyzers", "kernels", "patches"},
}
MOST_LINES = 400
MOST_STATEMENTS = 40

PYTHON = [name for name in checkout.files() if name.endswith(".py")]
OURS = [name for name in PYTHON if name.partition("/")[0] in checkout.FOLDERS]
TEXT = [
    name
    for name in checkout.files()
    if not (checkout.ROOT / name).is_symlink() and not name.endswith(".safetensors")
]

# Written in parts, so that this file holds none of what it looks for.
_MACHINE = re.compile(
    r"(?<![\w.])(?:/(?:work|root|Users)/\w|/home/(?!u\b)\w|/opt/(?:wheels|pypi)|[A-Z]:\\Users)"
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FOREIGN = re.compile(
    "|".join(
        [
            "Copyright " + r"(?:contributors to|\(c\)|\d{4}|the\b)",
            "SPDX-" + "(?:License-Identifier|FileCopyrightText)",
            "Licensed under " + "the (?:Apache|MIT|BSD)",
            "All rights " + "reserved",
        ],
    ),
    re.IGNORECASE,
)


def imports(source: str, package: str) -> Iterator[str]:
    """Every module that a file imports, absolute; `package` is the one that the file lies in.

    What is taken from a package is added to its name, since it may be a module itself.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            base = [*base, node.module] if node.module else base
            yield from (".".join([*base, alias.name]) for alias in node.names)


def imported(name: str) -> set[str]:
    """What a file of the four folders imports, as absolute names."""
    folder = ".".join(PurePosixPath(name).parent.parts)
    return set(imports((checkout.ROOT / name).read_text("utf-8"), f"{PACKAGE}.{folder}"))


def tops(name: str) -> set[str]:
    """The top-level packages that a file imports."""
    return {module.partition(".")[0] for module in imported(name)}


def test_relative_imports_are_read_like_python_reads_them() -> None:
    source = "import a.b\nfrom .c import d\nfrom ..analyzers import e\nfrom .. import kernels"

    assert set(imports(source, "ddtree.cli.render")) == {
        "a.b",
        "ddtree.cli.render.c.d",
        "ddtree.cli.analyzers.e",
        "ddtree.cli.kernels",
    }
    assert set(imports("from ..kernels.tree import walk", "ddtree.cli")) == {
        "ddtree.kernels.tree.walk"
    }


def test_the_four_folders_are_covered() -> None:
    assert {name.partition("/")[0] for name in OURS} == set(ALLOWED) == set(checkout.FOLDERS)


@pytest.mark.parametrize("name", OURS)
def test_dependencies_run_one_way(name: str) -> None:
    folder = name.partition("/")[0]
    used = {
        module.split(".")[1]
        for module in imported(name)
        if module.startswith(f"{PACKAGE}.") and module.split(".")[1] in ALLOWED
    }

    assert used - {folder} <= ALLOWED[folder]


@pytest.mark.parametrize("name", OURS)
def test_the_folders_are_imported_by_their_own_package_only(name: str) -> None:
    assert not tops(name) & {*ALLOWED, "tests", "benchmarks"}


def test_only_the_renderers_import_rich() -> None:
    users = {name for name in OURS if "rich" in tops(name)}

    assert users
    assert {name for name in users if not name.startswith("cli/render/")} == set()


def test_only_the_command_imports_typer() -> None:
    users = {name for name in OURS if tops(name) & {"typer", "click"}}

    assert users
    assert {name for name in users if not name.startswith("cli/")} == set()


def test_vllm_is_never_imported_by_what_reads_it() -> None:
    readers = [name for name in OURS if name.startswith(("analyzers/", "cli/", "kernels/"))]

    assert {name for name in readers if "vllm" in tops(name)} == set()


def test_the_readers_need_no_torch() -> None:
    readers = [name for name in OURS if name.startswith(("analyzers/", "cli/"))]

    assert {name for name in readers if tops(name) & {"torch", "triton", "numpy"}} == set()


def test_kernel_files_travel_with_torch_and_triton_alone() -> None:
    kernels = [name for name in OURS if name.endswith("/kernel.py")]

    assert kernels
    for name in kernels:
        assert tops(name) - {"__future__"} == {"torch", "triton"}, name


@pytest.mark.parametrize("name", PYTHON)
def test_files_stay_readable(name: str) -> None:
    assert len((checkout.ROOT / name).read_text("utf-8").splitlines()) <= MOST_LINES


def test_functions_are_kept_short_by_ruff() -> None:
    with (checkout.ROOT / "pyproject.toml").open("rb") as file:
        lint = tomllib.load(file)["tool"]["ruff"]["lint"]

    assert "PL" in lint["select"]
    assert lint["pylint"]["max-statements"] <= MOST_STATEMENTS


@pytest.mark.parametrize("name", TEXT)
def test_no_file_knows_the_machine_it_was_written_on(name: str) -> None:
    text = (checkout.ROOT / name).read_text("utf-8")

    assert _MACHINE.findall(text) == []


# The licence shows what a header looks like, and is nobody's.
@pytest.mark.parametrize("name", [name for name in TEXT if name != "LICENSE"])
def test_no_file_carries_the_header_of_another_project(name: str) -> None:
    assert _FOREIGN.findall((checkout.ROOT / name).read_text("utf-8")) == []


@pytest.mark.parametrize("name", [name for name in TEXT if name.endswith(".md")])
def test_links_between_documents_lead_somewhere(name: str) -> None:
    text = (checkout.ROOT / name).read_text("utf-8")
    links = [link for link in _LINK.findall(text) if "://" not in link and link[0] != "#"]
    folder = (checkout.ROOT / name).parent

    assert [link for link in links if not (folder / link.partition("#")[0]).exists()] == []


def test_the_patterns_find_what_they_are_for() -> None:
    assert _MACHINE.search("see " + "/wo" + "rk/main")
    assert _MACHINE.search("/ho" + "me/somebody/vllm")
    assert _FOREIGN.search("# SPDX" + "-License-Identifier: Apache-2.0")
    assert _FOREIGN.search("Copyright" + " contributors to the vLLM project")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["inspect", "--help"], ["inspect", "host", "--help"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from ddtree.cli.app import main
sys.argv = ["ddtree", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {module.partition(".")[0] for module in done.stderr.split()}

    assert done.stdout
    assert "typer" in loaded
    assert not loaded & {"libcst", "paramiko", "torch", "triton", "rich", "numpy", "vllm"}
