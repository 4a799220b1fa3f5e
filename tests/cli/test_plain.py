"""Lines for scripts: one finding, one line, always the same order."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ddtree.analyzers.result import Report
from ddtree.cli.render.report.plain import render

from .samples import HOSTILE, REPORTS, VERIFIER, hostile_report, report

FINDING = re.compile(r"^(?P<path>\S+):(?P<line>\d+):(?P<column>\d+): (?P<rule>\S+): (?P<text>.+)$")
KINDS = (
    "verdict",
    "target",
    "path",
    "stage",
    "install",
    "methods",
    "coverage",
    "unreadable",
    "note",
)


def lines(one: Report) -> list[str]:
    return render(one, quiet=False).splitlines()


def test_the_verdict_is_the_first_line() -> None:
    assert lines(report())[0] == (
        "verdict: linear: Both engine paths verify one chain of draft tokens"
    )


def test_quiet_is_the_verdict_line_alone() -> None:
    assert render(report(), quiet=True).splitlines() == lines(report())[:1]


def test_every_line_is_a_known_kind_or_a_finding() -> None:
    for line in lines(report()):
        assert line.partition(": ")[0] in KINDS or FINDING.match(line), line


def test_a_finding_has_place_rule_message_call_path_and_what_it_is_about() -> None:
    found = [line for line in lines(report()) if line.startswith(VERIFIER)]
    assert found == [
        f"{VERIFIER}:212:5: linear-loop: the loop stops at the first rejected position "
        "(reached by GPUModelRunner.sample -> Sampler.forward) [v2-runner verification linear E1]"
    ]


def test_evidence_that_only_its_own_function_reaches_names_no_callers() -> None:
    (found,) = [line for line in lines(report()) if "rejection_sampler.py:744" in line]
    assert found.endswith("rejected position [v1-runner verification linear E2]")


def test_the_order_does_not_depend_on_the_order_of_the_rules() -> None:
    one = report()
    other = replace(one, evidence=tuple(reversed(one.evidence)))
    assert lines(one) == lines(other)


def test_files_that_differ_are_counted_and_the_first_are_named() -> None:
    text = render(report(), quiet=False)
    assert "differs from RECORD: 5 modified: vllm/a.py, vllm/b.py, vllm/c.py and 2 more" in text
    assert "vllm/d.py" not in text


def test_other_lists_are_never_cut() -> None:
    text = render(report(), quiet=False)
    assert "stage: v2-runner: verification: linear: E1: one chain is walked" in text
    assert "path: v1-runner: linear: default per model: " in text
    assert "unreadable: vllm/bad.py: line 3: not UTF-8" in text


def test_hostile_text_stays_on_its_line_and_is_not_interpreted() -> None:
    text = render(hostile_report(), quiet=False)
    assert len(text.splitlines()) == len(text.split("\n")) - 1
    assert all(line.isprintable() for line in text.splitlines())
    assert "[red]x[/red] \\x1b[31m \\x07 \\u202e `|` \\xff" in text
    assert HOSTILE not in text


@pytest.mark.parametrize("name", REPORTS)
def test_every_sample_renders(name: str) -> None:
    assert lines(REPORTS[name]())[0].startswith("verdict: ")
