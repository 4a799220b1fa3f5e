"""Markdown that keeps its shape, whatever the code contains."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtree.analyzers.compare import compare
from ddtree.cli.render import md
from ddtree.cli.render.comparison import markdown as comparison_markdown
from ddtree.cli.render.report.markdown import render
from ddtree.cli.render.rules import markdown as rules_markdown

from .samples import REPORTS, RULE, hostile_report, report, tree_report


def test_the_verdict_comes_first_and_stands_alone_when_quiet() -> None:
    first = "**linear**: Both engine paths verify one chain of draft tokens\n"
    assert render(report(), quiet=False).startswith(first)
    assert render(report(), quiet=True) == first


def test_there_is_a_table_and_a_fenced_quote() -> None:
    text = render(report(), quiet=False)
    assert "| stage | v1-runner (default per model) | v2-runner (default) |" in text
    assert "| verification | linear E2 | linear E1 |" in text
    assert "```python\n    for i in range(n):\n" in text
    assert "Reached by `GPUModelRunner.sample`" in text


@pytest.mark.parametrize("name", REPORTS)
def test_every_table_row_has_as_many_cells_as_its_header(name: str) -> None:
    lines = render(REPORTS[name](), quiet=False).split("\n")
    for before, line in pairwise(lines):
        if before.startswith("| ") and line.startswith("| "):
            assert _bars(before) == _bars(line)


def _bars(line: str) -> int:
    # As GitHub counts: a backslash takes the next character with it.
    bars, escaped = 0, False
    for char in line:
        bars += char == "|" and not escaped
        escaped = char == "\\" and not escaped
    return bars


@given(st.text(alphabet="\\|`ab *", min_size=1))
def test_no_text_adds_a_cell(text: str) -> None:
    lines = md.table(["a", "b"], [[md.prose(text), md.code(text)]]).split("\n")
    assert _bars(lines[2]) == _bars(lines[0])


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`a``", "``` `a`` ```"), ("", "")],
)
def test_a_code_span_cannot_be_closed_from_inside(text: str, span: str) -> None:
    assert md.code(text) == span


def test_a_block_cannot_be_closed_from_inside() -> None:
    assert md.block("```\nx\n````", "python") == "`````python\n```\nx\n````\n`````"


def test_markup_and_mentions_are_text() -> None:
    assert md.prose("<b> *x* @triton.jit [a](b)") == ("\\<b> \\*x\\* `@triton.jit` \\[a\\](b)")


def test_a_hostile_report_notifies_nobody() -> None:
    text = render(hostile_report(), quiet=False)
    assert "\x1b" not in text
    summary = text.partition("\n")[0]
    assert summary.count("@") == summary.count("`@someone`") == 1


def test_a_comparison_names_what_is_gained_and_lost() -> None:
    text = comparison_markdown.render(compare(report(), tree_report()), quiet=False)
    assert text.startswith("**tree**: ")
    assert "| v2-runner | verification | linear | **tree** |" in text
    assert "- speculative: `-ngram +ddtree`" in text
    assert "### Evidence lost" in text


def test_rules_are_a_table_or_one_page() -> None:
    text = rules_markdown.render((RULE,), full=False)
    assert "| `linear-loop` | verification | linear | A loop over consecutive positions. |" in text
    page = rules_markdown.render((RULE,), full=True)
    assert page.count("Not found in:") == 2
    assert "```python\nfor i in range(n):\n    pass\n```" in page
