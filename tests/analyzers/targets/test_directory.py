"""Reading an install from folders."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from ddtree.analyzers.targets.directory import DirectorySource
from ddtree.analyzers.targets.source import READ_LIMIT

from .installs import PACKAGE, write

SAMPLER = "vllm/v1/sampler.py"


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    write(tmp_path, PACKAGE)
    return DirectorySource(tmp_path, {"vllm": tmp_path / "vllm"})


def test_bytes_come_in_the_order_asked_for(source: DirectorySource) -> None:
    asked = [SAMPLER, "vllm/gone.py", "vllm/__init__.py"]
    found = list(source.read_many(asked))
    assert [path for path, _ in found] == asked
    assert found[0][1] == PACKAGE[SAMPLER].encode()
    assert isinstance(found[1][1], FileNotFoundError)
    assert found[2][1] == b""


def test_only_files_of_the_walk_can_be_read(source: DirectorySource, tmp_path: Path) -> None:
    write(tmp_path, {"secret.py": "s"})
    for path in ("secret.py", "vllm/../secret.py", str(tmp_path / "secret.py"), "vllm"):
        for read in (source.read, source.open):
            with pytest.raises(FileNotFoundError):
                read(path)


def test_a_huge_file_is_streamed_but_not_read(source: DirectorySource, tmp_path: Path) -> None:
    library = tmp_path / "vllm/_C.so"
    with library.open("wb") as handle:
        handle.truncate(READ_LIMIT + 1)
    with pytest.raises(OSError, match="larger than 64 MiB"):
        source.read("vllm/_C.so")
    with source.open("vllm/_C.so") as stream:
        stream.seek(READ_LIMIT)
        assert stream.read(10) == b"\0"
    with library.open("rb") as handle:
        expected = hashlib.file_digest(handle, "sha256").digest()
    assert source.digest("vllm/_C.so", "sha256") == expected


def test_a_pipe_that_takes_a_files_place_does_not_block(
    source: DirectorySource, tmp_path: Path
) -> None:
    source.files()
    (tmp_path / SAMPLER).unlink()
    os.mkfifo(tmp_path / SAMPLER)
    with pytest.raises(OSError, match="not a regular file"):
        source.read(SAMPLER)


def test_digests_are_those_of_the_bytes(source: DirectorySource) -> None:
    for path, content in PACKAGE.items():
        for algorithm in ("sha256", "sha512"):
            expected = hashlib.new(algorithm, content.encode()).digest()
            assert source.digest(path, algorithm) == expected
