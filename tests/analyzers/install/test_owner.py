"""Several distributions that claim one package."""

from __future__ import annotations

from pathlib import Path

from ddtree.analyzers.install.distribution import distributions
from ddtree.analyzers.install.owner import rank_owners, record_of
from ddtree.analyzers.targets.directory import DirectorySource
from ddtree.analyzers.targets.local import LocalSite

from ..targets.installs import PACKAGE, metadata, write

OLD = dict(PACKAGE) | {"vllm/v1/sampler.py": "def sample(logits):\n    return logits.argmin(-1)\n"}


def _ranked(root: Path) -> list[str]:
    source = DirectorySource(root, {"vllm": root / "vllm"})
    return [
        owner.identity()[0] for owner in rank_owners(list(distributions(LocalSite(root))), source)
    ]


def test_the_one_whose_bytes_are_there_comes_first(tmp_path: Path) -> None:
    write(tmp_path, metadata("a-old", "1", OLD) | metadata("z-new", "2", PACKAGE))
    assert _ranked(write(tmp_path, PACKAGE)) == ["z-new", "a-old"]
    assert _ranked(write(tmp_path, OLD)) == ["a-old", "z-new"]


def test_a_claimant_without_a_record_comes_last(tmp_path: Path) -> None:
    write(tmp_path, {"a-1.dist-info/top_level.txt": "vllm"} | metadata("b", "2", PACKAGE))
    assert _ranked(write(tmp_path, PACKAGE)) == ["b", "a"]


def test_a_record_that_lists_nothing_of_the_package_is_none(tmp_path: Path) -> None:
    write(tmp_path, metadata("a", "1", {"a.pth": "/co"}) | {"b-1.dist-info/METADATA": ""})
    assert [record_of(dist) for dist in distributions(LocalSite(tmp_path))] == [None, None]
