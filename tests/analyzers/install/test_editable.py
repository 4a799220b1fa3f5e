"""What installers leave behind for editable installs."""

from __future__ import annotations

import pytest

from ddtree.analyzers.install.editable import finder_mapping, finder_modules, pth_folders


def test_pth_lines() -> None:
    text = "# comment\n\n/src/a  \nimport os; os.system('x')\nimport\tsys\nimportant\n"
    assert list(pth_folders(text)) == ["/src/a", "important"]


def test_finder_modules() -> None:
    text = "import __editable___vllm_1_0_finder; __editable___vllm_1_0_finder.install()"
    assert set(finder_modules(text)) == {"__editable___vllm_1_0_finder"}
    assert finder_modules("import _virtualenv") == []


@pytest.mark.parametrize(
    "source",
    [
        "MAPPING = {'vllm': '/co/vllm'}",
        "MAPPING: dict[str, str] = {'vllm': '/co/vllm'}",
        "import os\nMAPPING = {'vllm': '/co/vllm', 'x': os.getcwd(), **y, 3: 'z'}",
    ],
)
def test_a_mapping_is_read(source: str) -> None:
    assert finder_mapping(source) == {"vllm": "/co/vllm"}


@pytest.mark.parametrize(
    "source",
    [
        "",
        "MAPPING = make()",
        "MAPPING = ",
        "MAPPING: dict",
        "OTHER = {'vllm': '/x'}",
        "a\0b",
        "raise SystemExit(3)",
        "(" * 1000,
    ],
)
def test_anything_else_maps_nothing(source: str) -> None:
    assert finder_mapping(source) == {}
