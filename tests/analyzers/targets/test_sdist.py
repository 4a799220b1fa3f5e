"""Tar archives, most of them hostile."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ArchiveError
from ddtree.analyzers.targets import sdist
from ddtree.analyzers.targets.archive import ArchiveSource
from ddtree.analyzers.targets.sdist import open_tar

from .installs import PACKAGE, tarred

TOP = "vllm-1.2.3"
FILES = {f"{TOP}/{path}": content for path, content in PACKAGE.items()}
SAMPLER = "vllm/v1/sampler.py"


def _source(path: Path) -> ArchiveSource:
    return ArchiveSource(open_tar(path).below(f"{TOP}/"), ["vllm"])


def _with(path: Path, *infos: tarfile.TarInfo) -> Path:
    tarred(path, FILES, "w")
    with tarfile.open(path, "a") as archive:
        for info in infos:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return path


def _info(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_members_are_read_in_place(tmp_path: Path, mode: str) -> None:
    source = _source(tarred(tmp_path / "a.tar", FILES, mode))
    assert list(source.files()) == sorted(PACKAGE)
    # In any order, and more than once.
    for path in [*sorted(PACKAGE, reverse=True), *PACKAGE]:
        assert source.read(path) == PACKAGE[path].encode()


def test_a_leading_dot_is_no_folder(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tar", {f"./{path}": content for path, content in FILES.items()})
    assert list(_source(path).files()) == sorted(PACKAGE)


@pytest.mark.parametrize("name", ["/etc/x.py", "../x.py", f"{TOP}/vllm/../../x", "a\\b.py", "C:/x"])
def test_names_that_lead_outside_refuse_the_archive(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="leads outside"):
        open_tar(_with(tmp_path / "a.tar", _info(name)))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_are_named_and_not_read(tmp_path: Path, kind: bytes) -> None:
    info = _info(f"{TOP}/vllm/odd.py", kind, "/etc/passwd")
    source = _source(_with(tmp_path / "a.tar", info))
    assert [problem.file for problem in source.problems()] == ["vllm/odd.py"]
    assert list(source.files()) == sorted(PACKAGE)


def test_a_name_that_occurs_twice_refuses_the_archive(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="twice"):
        open_tar(_with(tmp_path / "a.tar", _info(f"{TOP}/{SAMPLER}", size=3)))


@pytest.mark.parametrize("keep", [0, 20, 150, -1, -9, -60])
def test_a_truncated_file_is_an_error(tmp_path: Path, keep: int) -> None:
    path = tarred(tmp_path / "a.tar.gz", FILES)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArchiveError):
        open_tar(path)


def test_a_bomb_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdist, "_RATIO_FROM", 4 << 20)
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb") as packed:
        packed.write(bytes(16 << 20))
    with pytest.raises(ArchiveError, match="more than 5 MiB"):
        open_tar(path)


def test_a_member_larger_than_the_archive_is_an_error(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tar", FILES, "w")
    huge = _info(f"{TOP}/vllm/huge.py", size=1 << 40).tobuf(tarfile.GNU_FORMAT)
    path.write_bytes(huge + path.read_bytes())
    with pytest.raises(ArchiveError):
        open_tar(path)


def _pax_loop(data: bytes) -> bytes:
    """A header whose size is negative, which sent older Pythons round in circles."""
    header = bytearray(_info("vllm/a.py").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = b"\xff" * 10 + b"\xfe\x00"
    header[148:156] = b" " * 8
    checksum = sum(header)
    header[148:156] = f"{checksum:06o}\0 ".encode()
    return bytes(header) + data


def _long_names(data: bytes) -> bytes:
    header = _info("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=1).tobuf(tarfile.GNU_FORMAT)
    return (header + b"a".ljust(512, b"\0")) * 3000 + data


@pytest.mark.parametrize("prepend", [_pax_loop, _long_names])
def test_headers_that_make_no_sense(tmp_path: Path, prepend: Callable[[bytes], bytes]) -> None:
    path = tarred(tmp_path / "a.tar", FILES, "w")
    path.write_bytes(prepend(path.read_bytes()))
    with pytest.raises(ArchiveError):
        open_tar(path)


def test_too_many_members_refuse_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdist, "MAX_MEMBERS", 3)
    with pytest.raises(ArchiveError, match="member 3"):
        open_tar(tarred(tmp_path / "a.tar.gz", FILES))


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_never_escapes(tmp_path: Path, seed: int) -> None:
    path = tarred(tmp_path / "a.tar", FILES, "w" if seed % 2 else "w:gz")
    data = bytearray(path.read_bytes())
    dice = random.Random(seed)
    for _ in range(dice.randint(1, 8)):
        data[dice.randrange(min(len(data), 4000))] = dice.randrange(256)
    path.write_bytes(data)
    try:
        archive = open_tar(path)
    except ArchiveError:
        return
    source = ArchiveSource(archive, [name.partition("/")[0] for name in archive.members])
    for _, content in source.read_many(source.files()):
        assert isinstance(content, bytes | OSError)
    archive.close()
