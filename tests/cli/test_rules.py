"""The rules on the screen and as lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddtree.analyzers.errors import UsageError
from ddtree.cli.render.rules import plain, terminal
from ddtree.cli.rulebook import find

from .samples import HOSTILE, RULE
from .screens import become, shown

OTHER = replace(RULE, name="pointer-walk", help="One line of help.\n\n  a\n  list")


def test_a_line_per_rule() -> None:
    assert plain.render((RULE, OTHER), full=False).splitlines() == [
        "linear-loop: verification: linear: A loop over consecutive positions.",
        "pointer-walk: verification: linear: A loop over consecutive positions.",
    ]


def test_one_rule_with_everything() -> None:
    text = plain.render((RULE,), full=True)
    assert RULE.help in text
    assert text.count("\nfound in:\n") == 1
    assert text.count("\nnot found in:\n") == 2


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("full", [False, True])
def test_screens_fit(monkeypatch: pytest.MonkeyPatch, columns: int, full: bool) -> None:
    become(monkeypatch, columns, NO_COLOR="1")
    wide = replace(RULE, help=("long words of help " * 20).strip(), summary=HOSTILE)
    lines = shown(terminal.render((wide, OTHER), full=full))
    assert all(len(line) <= columns and line.isprintable() for line in lines)


def test_paragraphs_are_reflowed_and_lists_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, 80, NO_COLOR="1")
    wrapped = replace(OTHER, help="one\ntwo\n\n  three\n  four")
    lines = [line.rstrip() for line in shown(terminal.render((wrapped,), full=True))]
    assert "one two" in lines
    assert "  three" in lines


def test_rules_are_grouped_by_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, 80, NO_COLOR="1")
    lines = shown(terminal.render((RULE, OTHER), full=False))
    assert lines.index("verification") < lines.index("linear-loop  shows linear")


def test_a_rule_is_found_by_its_name_only() -> None:
    assert find("pointer-walk", (RULE, OTHER)) is OTHER
    with pytest.raises(UsageError, match="no rule 'pointer'") as caught:
        find("pointer", (RULE, OTHER))
    assert caught.value.hint == "ddtree inspect rules pointer-walk"
    with pytest.raises(UsageError) as caught:
        find("zzz", (RULE, OTHER))
    assert caught.value.hint == "ddtree inspect rules"
