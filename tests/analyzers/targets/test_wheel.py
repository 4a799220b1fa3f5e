"""Zip archives, most of them hostile."""

from __future__ import annotations

import hashlib
import random
import stat
import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from ddtree.analyzers.errors import ArchiveError
from ddtree.analyzers.targets import members, wheel
from ddtree.analyzers.targets.archive import Archive, ArchiveSite, ArchiveSource
from ddtree.analyzers.targets.wheel import open_zip

from .installs import PACKAGE, zipped

SAMPLER = "vllm/v1/sampler.py"


def _source(path: Path) -> ArchiveSource:
    return ArchiveSource(open_zip(path), ["vllm"])


def _with_link(path: Path) -> Path:
    zipped(path, PACKAGE)
    info = zipfile.ZipInfo("vllm/link.py")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(info, "/etc/passwd")
    return path


def _patched(path: Path, old: bytes, new: bytes) -> Path:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    return path


def test_members_are_read_in_place(tmp_path: Path) -> None:
    source = _source(zipped(tmp_path / "a.whl", dict(PACKAGE) | {"vllm/__pycache__/a.pyc": ""}))
    assert list(source.files()) == sorted(PACKAGE)
    assert source.read(SAMPLER) == PACKAGE[SAMPLER].encode()
    with source.open(SAMPLER) as stream:
        stream.seek(4)
        assert stream.read(6) == b"sample"
        stream.seek(0)
        assert stream.read() == PACKAGE[SAMPLER].encode()
    expected = hashlib.sha256(PACKAGE[SAMPLER].encode()).digest()
    assert source.digest(SAMPLER, "sha256") == expected
    assert source.problems() == []


def test_only_files_of_the_parts_can_be_read(tmp_path: Path) -> None:
    archive = open_zip(zipped(tmp_path / "a.whl", dict(PACKAGE) | {"secret.py": "s"}))
    source = ArchiveSource(archive, ["vllm"])
    for path in ("secret.py", "vllm", "vllm/gone.py"):
        for read in (source.read, source.open):
            with pytest.raises(FileNotFoundError):
                read(path)
    assert ArchiveSite(archive).names() == ["secret.py", "vllm"]


def test_data_folders_are_read_where_they_are_installed(tmp_path: Path) -> None:
    files = {f"vllm-1.data/platlib/{path}": content for path, content in PACKAGE.items()}
    assert list(_source(zipped(tmp_path / "a.whl", files)).files()) == sorted(PACKAGE)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/x.py",
        "../x.py",
        "vllm/../../x.py",
        "vllm\\x.py",
        "C:/x.py",
        "\\\\host\\x.py",
        "c:x.py",
    ],
)
def test_names_that_lead_outside_refuse_the_archive(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "a.whl", dict(PACKAGE) | {name: ""})
    with pytest.raises(ArchiveError, match="leads outside"):
        open_zip(path)


def test_a_name_with_a_nul_refuses_the_archive(tmp_path: Path) -> None:
    path = _patched(zipped(tmp_path / "a.whl", {"vllm/xAtxt": ""}), b"xAtxt", b"x\0txt")
    with pytest.raises(ArchiveError, match="leads outside"):
        open_zip(path)


def test_a_name_that_occurs_twice_refuses_the_archive(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.whl", PACKAGE)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(SAMPLER, "another content")
    with pytest.raises(ArchiveError, match="twice"):
        open_zip(path)


def test_a_symbolic_link_is_named_and_not_read(tmp_path: Path) -> None:
    source = _source(_with_link(tmp_path / "a.whl"))
    assert list(source.files()) == sorted(PACKAGE)
    assert [problem.file for problem in source.problems()] == ["vllm/link.py"]


@pytest.mark.parametrize("keep", [0, 1, 10, 200, -1, -30])
def test_a_truncated_file_is_an_error(tmp_path: Path, keep: int) -> None:
    path = zipped(tmp_path / "a.whl", PACKAGE)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ArchiveError):
        open_zip(path)


def test_a_flipped_byte_hides_one_member_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in PACKAGE.items():
            archive.writestr(name, content)
    source = _source(_patched(path, b"argmax", b"argmin"))
    found = dict(source.read_many(source.files()))
    broken = found.pop(SAMPLER)
    assert isinstance(broken, OSError)
    assert "CRC" in str(broken.strerror)
    assert found == {name: PACKAGE[name].encode() for name in found}
    with source.open(SAMPLER) as stream, pytest.raises(OSError, match="CRC"):
        stream.read()


def test_an_encrypted_member_is_an_oserror(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.whl", {SAMPLER: PACKAGE[SAMPLER]})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match="encrypted"):
        _source(path).read(SAMPLER)


def test_an_unusual_method_is_an_oserror(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(SAMPLER, PACKAGE[SAMPLER])
    with pytest.raises(OSError, match="method 14"):
        _source(path).read(SAMPLER)


def test_a_bomb_is_not_inflated(tmp_path: Path) -> None:
    source = _source(zipped(tmp_path / "a.whl", {"vllm/bomb.py": bytes(8 << 20), SAMPLER: "x"}))
    with pytest.raises(OSError, match="500-fold"):
        source.read("vllm/bomb.py")
    assert source.read(SAMPLER) == b"x"


def test_a_member_that_understates_its_size_is_an_oserror(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.whl", {"vllm/bomb.py": bytes(1 << 20)})
    _patched(path, struct.pack("<L", 1 << 20), struct.pack("<L", 50))
    with pytest.raises(OSError, match="damaged"):
        _source(path).read("vllm/bomb.py")


def test_huge_members_are_neither_read_nor_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = random.Random(3).randbytes(9 << 20)
    source = _source(zipped(tmp_path / "a.whl", {"vllm/_C.so": content}))
    assert source.digest("vllm/_C.so", "sha256") is None
    assert source.read("vllm/_C.so") == content
    monkeypatch.setattr("ddtree.analyzers.targets.archive.READ_LIMIT", 8 << 20)
    with pytest.raises(OSError, match="larger than 8 MiB"):
        source.read("vllm/_C.so")
    with source.open("vllm/_C.so") as stream:
        stream.seek(-4, 2)
        assert stream.read() == content[-4:]


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("MAX_TOTAL", 50, "GiB"), ("MAX_TEXT", 50, "MiB of text")],
)
def test_absurd_totals_refuse_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, words: str
) -> None:
    monkeypatch.setattr(members, limit, value)
    with pytest.raises(ArchiveError, match=words):
        open_zip(zipped(tmp_path / "a.whl", PACKAGE))


def test_too_many_members_refuse_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "MAX_MEMBERS", 3)
    with pytest.raises(ArchiveError, match="5 members"):
        open_zip(zipped(tmp_path / "a.whl", PACKAGE))


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_never_escapes(tmp_path: Path, seed: int) -> None:
    path = zipped(tmp_path / "a.whl", PACKAGE)
    data = bytearray(path.read_bytes())
    dice = random.Random(seed)
    for _ in range(dice.randint(1, 6)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path.write_bytes(data)
    archive: Archive | None = None
    try:
        archive = open_zip(path)
    except ArchiveError:
        return
    source = ArchiveSource(archive, ["vllm"])
    for name, content in source.read_many(source.files()):
        assert isinstance(content, OSError) or content == PACKAGE.get(name, "").encode()
    archive.close()
