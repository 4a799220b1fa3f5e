"""File names in reports."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.analyzers.install.names import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("vllm/v1/sampler.py", "vllm/v1/sampler.py"),
        ("größe.py", "größe.py"),
        (os.fsdecode(b"caf\xe9.py"), "caf\\xe9.py"),
        ("a\nb.py", "a\\nb.py"),
        ("\x1b[2J.py", "\\x1b[2J.py"),
        ("\u202egnp.py", "\\u202egnp.py"),
    ],
)
def test_printable(name: str, shown: str) -> None:
    assert printable(name) == shown


@given(st.text(st.characters()))
def test_printable_text_survives_utf8_and_json(name: str) -> None:
    shown = printable(name)
    assert shown.isprintable()
    assert json.loads(json.dumps(shown, ensure_ascii=False).encode("utf-8")) == shown
