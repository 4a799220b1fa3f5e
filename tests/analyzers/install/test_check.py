"""Comparing an install with its RECORD."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ddtree.analyzers.install.check import Differences, RecordCheck
from ddtree.analyzers.install.record import Record, parse_record
from ddtree.analyzers.result import Install
from ddtree.analyzers.targets.directory import DirectorySource

from ..targets.installs import PACKAGE, record_line, write

SAMPLER = "vllm/v1/sampler.py"
LIBRARY = "vllm/_C.abi3.so"
FILES = dict(PACKAGE) | {LIBRARY: b"\x7fELF" + bytes(3 << 20)}


def _record(*more: str) -> Record:
    lines = [record_line(path, content) for path, content in FILES.items()]
    return parse_record("\n".join([*lines, *more]).encode())


def _source(root: Path) -> DirectorySource:
    return DirectorySource(root, {"vllm": root / "vllm"})


def _check(root: Path, record: Record | None = None) -> Differences:
    return RecordCheck(_source(root), record or _record()).finish()


def test_an_untouched_install_shows_nothing(tmp_path: Path) -> None:
    assert _check(write(tmp_path, FILES)) == Differences()


def test_no_record_compares_nothing(tmp_path: Path) -> None:
    check = RecordCheck(_source(write(tmp_path, FILES)), None)

    assert check.finish() == Differences(compared=False)


@pytest.mark.parametrize("path", [SAMPLER, LIBRARY])
@pytest.mark.parametrize("fed", [True, False])
def test_one_flipped_byte_is_modified(tmp_path: Path, path: str, fed: bool) -> None:
    write(tmp_path, FILES)
    data = bytearray((tmp_path / path).read_bytes())
    data[-3] ^= 1
    (tmp_path / path).write_bytes(data)
    check = RecordCheck(_source(tmp_path), _record())
    if fed:
        check.feed(path, bytes(data))
    assert check.finish() == Differences(modified=(path,))


def test_another_size_is_modified_without_a_hash(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / LIBRARY).write_bytes(b"short")
    source = _source(tmp_path)
    source.files()
    (tmp_path / LIBRARY).unlink()
    assert RecordCheck(source, _record()).finish().modified == (LIBRARY,)


def test_missing_and_extra(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / SAMPLER).unlink()
    write(tmp_path, {"vllm/hack.py": "", "vllm/old.pyc": "", "vllm/__pycache__/a.pyc": ""})
    found = _check(tmp_path, _record("vllm/__pycache__/b.cpython-312.pyc,,", "other/gone.py,,3"))
    assert found == Differences(missing=(SAMPLER,), extra=("vllm/hack.py",))


def test_a_line_without_a_hash_verifies_nothing(tmp_path: Path) -> None:
    write(tmp_path, dict(FILES) | {"vllm/free.py": "x"})
    found = _check(tmp_path, _record("vllm/free.py,,1"))
    assert found == Differences(unverified=("vllm/free.py",))


def test_what_hides_behind_a_broken_link_is_not_called_missing(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    (tmp_path / SAMPLER).unlink()
    (tmp_path / SAMPLER).symlink_to("nowhere.py")
    assert _check(tmp_path) == Differences(unverified=(SAMPLER,))


def test_a_file_that_vanishes_after_the_walk_is_unverified(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    check = RecordCheck(_source(tmp_path), _record())
    (tmp_path / SAMPLER).unlink()
    assert check.finish() == Differences(unverified=(SAMPLER,))


def test_known_digests_save_the_reading(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    first = RecordCheck(_source(tmp_path), _record())
    first.finish()
    known = json.loads(json.dumps(first.digests))
    source = _source(tmp_path)
    second = RecordCheck(source, _record(), {path: tuple(pair) for path, pair in known.items()})
    assert second.digests == first.digests
    # Nothing is read any more: the answer stays the same with the files gone after the walk.
    for path in FILES:
        (tmp_path / path).unlink()
    assert second.finish() == Differences()


def test_a_known_digest_does_not_outlive_an_edit_of_the_same_size_and_time(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    first = RecordCheck(_source(tmp_path), _record())
    first.finish()
    path = tmp_path / SAMPLER
    # File systems keep time in steps of some milliseconds.
    time.sleep(0.03)
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(path.read_bytes().replace(b"argmax", b"argmin"))
    os.utime(path, ns=times)
    second = RecordCheck(_source(tmp_path), _record(), first.digests)
    assert second.finish() == Differences(modified=(SAMPLER,))


def test_beyond_a_limit_only_sizes_are_compared(tmp_path: Path) -> None:
    source = _source(write(tmp_path, FILES))
    assert RecordCheck(source, _record(), limit=1 << 20).finish().unverified == (LIBRARY,)
    (tmp_path / LIBRARY).write_bytes(b"short")
    check = RecordCheck(_source(tmp_path), _record(), limit=1 << 20)
    assert check.finish().modified == (LIBRARY,)


def test_differences_go_onto_the_install() -> None:
    install = Install("vllm", "1.0", "/x", None, None, None, False)
    filled = Differences(("a",), ("b",), ("c",)).onto(install)
    assert (filled.modified, filled.missing, filled.extra) == (("a",), ("b",), ("c",))
    assert filled.version == "1.0"
