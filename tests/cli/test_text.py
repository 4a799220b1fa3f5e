"""Nothing that repaints a terminal survives; everything else does."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.cli.render.text import clean, cleaned

from .samples import evidence, hostile_report


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("plain text, größer 深", "plain text, größer 深"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x9b31m", "\\x9b31m"),
        ("rtl \u202e end", "rtl \\u202e end"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("byte \udcff", "byte \\xff"),
        ("odd \ud800", "odd \\ud800"),
    ],
)
def test_what_does_not_print_is_shown_as_an_escape(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


@given(st.text(st.characters()))
def test_clean_text_prints_and_stays_clean(text: str) -> None:
    once = clean(text)
    assert once.isprintable()
    assert clean(once) == once


def test_a_quote_keeps_its_lines_and_nothing_else() -> None:
    item = cleaned(evidence(quote="a\n\tb\x1b[0m", message="one\ntwo"))
    assert item.quote == "a\n\tb\\x1b[0m"
    assert item.message == "one\\ntwo"


def test_every_string_of_a_report_is_reached() -> None:
    def strings(value: object) -> list[str]:
        if isinstance(value, dict):
            return [text for item in value.values() for text in strings(item)]
        if isinstance(value, list | tuple):
            return [text for item in value for text in strings(item)]
        return [value] if isinstance(value, str) else []

    found = strings(asdict(cleaned(hostile_report())))
    assert len(found) > 40
    assert all(text.isprintable() for text in found)
