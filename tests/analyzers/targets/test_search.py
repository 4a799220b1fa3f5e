"""Where imports would find a module, without importing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddtree.analyzers.targets.search import ModuleSearch

from .installs import PACKAGE, environment, installed, metadata, write


def _editable(site: Path, style: str, checkout: Path) -> None:
    url = json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    more = {"direct_url.json": url} if style == "direct-url" else {}
    files: dict[str, dict[str, str]] = {
        "pth": {"__editable__.vllm-9.pth": f"{checkout}\n"},
        "finder": {
            "__editable__.vllm-9.pth": "import __editable___vllm_9_finder; "
            "__editable___vllm_9_finder.install()\n",
            "__editable___vllm_9_finder.py": f"MAPPING = {{'vllm': {str(checkout / 'vllm')!r}}}\n"
            "raise SystemExit('run')\n",
        },
        "hatch": {"_vllm.pth": str(checkout)},
        "easy-install": {"easy-install.pth": f"# old\n{checkout}\n"},
        "egg-link": {"vllm.egg-link": f"{checkout}\n."},
        "direct-url": {"_vllm_loader.pth": "import _vllm_loader"},
    }
    write(site, files[style])
    write(site, metadata("vllm", "9", files[style], more))


STYLES = ["pth", "finder", "hatch", "easy-install", "egg-link", "direct-url"]


@pytest.mark.parametrize("style", STYLES)
def test_every_style_of_editable_install(tmp_path: Path, style: str) -> None:
    site = environment(tmp_path / "venv")
    checkout = write(tmp_path / "a checkout", dict(PACKAGE) | {"pyproject.toml": ""})
    _editable(site, style, checkout)
    (place,) = ModuleSearch([site]).find("vllm")
    assert (place.path, place.editable) == (checkout / "vllm", True)


def test_what_pip_and_setuptools_really_leave_behind(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    checkout = write(tmp_path / "co", {"vllm/__init__.py": "", "vllm/v1/__init__.py": ""})
    write(checkout, {"csrc/x.txt": "", "pyproject.toml": _PROJECT})
    site = environment(tmp_path / "venv")
    command = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(site), "--editable", str(checkout)]
    subprocess.run(command, check=True, capture_output=True)
    (place,) = ModuleSearch([site]).find("vllm")
    assert (place.path, place.editable) == (checkout / "vllm", True)


_PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "vllm-fork"
version = "1.2"
[tool.setuptools.packages.find]
include = ["vllm*"]
"""


def test_the_order_is_that_of_imports(tmp_path: Path) -> None:
    site = environment(tmp_path / "venv")
    checkout = write(tmp_path / "co", dict(PACKAGE) | {"setup.py": ""})
    _editable(site, "finder", checkout)
    user = installed(tmp_path / "user")
    installed(site)
    found = ModuleSearch([user, site]).find("vllm")
    assert [place.path.parent for place in found] == [user, site, checkout]
    assert [place.editable for place in found] == [False, False, True]


def test_one_folder_reached_twice_is_one_place(tmp_path: Path) -> None:
    site = installed(environment(tmp_path / "venv"))
    (tmp_path / "alias").symlink_to(site)
    write(site, {"more.pth": f"{tmp_path}/alias\n{site}\n"})
    assert len(ModuleSearch([site, tmp_path / "alias"]).find("vllm")) == 1


def test_a_folder_that_a_pth_adds_is_not_editable_by_itself(tmp_path: Path) -> None:
    site = environment(tmp_path / "venv")
    write(site, {"eggs.pth": "./vllm-0.1-py3.12.egg\n/nowhere\na\0b\n" + "x" * 5000})
    write(site / "vllm-0.1-py3.12.egg", PACKAGE)
    write(tmp_path / "shared", PACKAGE)
    write(site, {"shared.pth": str(tmp_path / "shared")})
    found = ModuleSearch([site]).find("vllm")
    assert [place.editable for place in found] == [False, False]


def test_a_folder_without_init_is_no_module(tmp_path: Path) -> None:
    site = write(tmp_path, {"vllm/v1/a.py": "", "other.py": "", "vllm.txt": ""})
    search = ModuleSearch([site])
    assert search.find("vllm") == []
    assert [place.path.name for place in search.find("other")] == ["other.py"]


def test_a_folder_that_may_not_be_looked_into_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"bad.pth": os.fsdecode(b"/\xff\xfe\n").encode("utf-8", "surrogateescape")})
    assert ModuleSearch([tmp_path, tmp_path / "gone"]).find("vllm") == []
