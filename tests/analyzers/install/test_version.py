"""Name and version without an installer's metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtree.analyzers.install.version import checkout_identity, module_version
from ddtree.analyzers.targets.local import LocalSite

from ..targets.installs import write

PYPROJECT = '[project]\nname = "vllm"\nversion = "3"\n'


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (None, None)),
        ({"pyproject.toml": PYPROJECT}, ("vllm", "3")),
        ({"pyproject.toml": "[project"}, (None, None)),
        ({"pyproject.toml": "project = 3"}, (None, None)),
        ({"pyproject.toml": PYPROJECT, "PKG-INFO": "Name: fork\nVersion: 2\n"}, ("fork", "2")),
        (
            {"PKG-INFO": "Name: fork\nVersion: 2\n", "vllm/_version.py": "version = '2.dev1'"},
            ("fork", "2.dev1"),
        ),
        (
            {"a.egg-info/PKG-INFO": "Name: a\nVersion: 1\n", "a.egg-info/top_level.txt": "vllm"},
            ("a", "1"),
        ),
    ],
)
def test_checkout_identity(
    tmp_path: Path, files: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    assert checkout_identity(LocalSite(write(tmp_path, files))) == expected


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("__version__ = version = '0.20.1'", "0.20.1"),
        ("version: str\nversion: str = '1'", "1"),
        ("__version__ = compute()", None),
        ("other = '1'", None),
        ("version = ", None),
        ("raise SystemExit", None),
    ],
)
def test_module_version(source: str, version: str | None) -> None:
    assert module_version(source) == version
