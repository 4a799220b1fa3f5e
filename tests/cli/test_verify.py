"""`ddtree verify` as a command line: formats, contract, exit codes, what goes where."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from ddtree.cli import verify as command
from ddtree.cli.app import app
from ddtree.cli.options import Format, TextFormat
from ddtree.cli.render import error
from ddtree.cli.render.verify import exit_code, phrases, render
from ddtree.cli.render.verify import json as json_form
from ddtree.patches.errors import FarSideError
from ddtree.patches.verify import options, perform, report
from ddtree.patches.verify.report import Report

from . import screens
from .verify_samples import REPORTS, failed, partial, passed, subject

HIDDEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\u202e\udcff]")


def schema() -> dict[str, Any]:
    text = files("ddtree.cli").joinpath("schema", "verify-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def errors(document: Any) -> list[str]:
    return [problem.message for problem in Draft202012Validator(schema()).iter_errors(document)]


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_follows_the_contract(name: str) -> None:
    text = json_form.render(REPORTS[name]())
    assert text.isascii()
    assert errors(json.loads(text)) == []


def test_a_failure_follows_the_contract() -> None:
    failure = FarSideError("it died", expected="the last word", hint="ddtree patch --status")
    document = json.loads(error.as_data(failure, Format.JSON))
    assert errors(document) == []
    assert document["error"]["exit_code"] == 5


@pytest.mark.parametrize("name", ["Check", "Level", "Subject", "Engine", "Cost", "Report"])
def test_schema_and_dataclasses_have_the_same_fields(name: str) -> None:
    declared = {field.name for field in fields(getattr(report, name))}
    if name == "Report":
        declared = declared - {"tool_version"} | {"schema_version", "tool"}
    definition = schema()["$defs"][name]
    assert set(definition["properties"]) == set(definition["required"]) == declared
    assert definition["additionalProperties"] is False


@pytest.mark.parametrize("name", ["Outcome", "Verdict", "Pays"])
def test_schema_and_enumerations_have_the_same_values(name: str) -> None:
    assert schema()["$defs"][name]["enum"] == [one.value for one in getattr(report, name)]


def test_what_the_schemas_share_is_the_same() -> None:
    other = files("ddtree.cli").joinpath("schema", "inspect-1.json").read_text(encoding="utf-8")
    for name in ("Tool", "Error", "Failure"):
        assert schema()["$defs"][name] == json.loads(other)["$defs"][name]


def put(value: object, *keys: str | int) -> Callable[[Any], None]:
    def breaking(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return breaking


@pytest.mark.parametrize(
    "breaking",
    [
        put("maybe", "verdict"),
        put("not_run", "levels", 0, "outcome"),
        # What passed has no level that did not.
        put("not run", "levels", 4, "outcome"),
        put("L6", "levels", 0, "level"),
        put([], "levels"),
        put(-1, "engines", 0, "verifications"),
        put("1.5", "engines", 2, "acceptance_length"),
        put("fast", "pays"),
        put("", "sentence"),
        put(0, "subject", "budgets", 0),
        put("v3", "subject", "runner"),
        put("no", "subject", "interpreted"),
        put("anything", "subject", "colour"),
        put(None, "costs", 0, "interleaved"),
    ],
)
def test_the_schema_catches_a_broken_contract(breaking: Callable[[Any], None]) -> None:
    document = json.loads(json_form.render(passed()))
    broken = copy.deepcopy(document)
    breaking(broken)
    assert errors(document) == []
    assert errors(broken) != []


def test_plain_lines() -> None:
    lines = render(passed(), TextFormat.TERMINAL, quiet=False).splitlines()
    assert (
        lines[0] == "verify: passed: all levels passed: with trees, the output is greedy decoding"
    )
    assert lines[1].startswith("pays: no: A tree does not pay here")
    assert "level: L4: passed: a tree of width 1 is the stock chain: 2 checks" in lines
    assert "check: L1: passed: walk: 12 cases" in lines
    assert [line.split(":")[1] for line in lines if line.startswith("engine")] == [
        " chain",
        " tree 32",
    ]
    assert all(re.match(r"[a-z]+: ", line) for line in lines)
    assert render(passed(), TextFormat.TERMINAL, quiet=True).splitlines() == lines[:2]


def test_the_runner_is_named_with_who_chose_it() -> None:
    """Nobody takes the interpreter's run for a GPU's."""
    lines = render(passed(), TextFormat.TERMINAL, quiet=False).splitlines()
    assert "runner: v1 model runner, as this vLLM takes it" in lines
    slow = passed(subject=subject(runner="v2", runner_asked=True, interpreted=True))
    lines = render(slow, TextFormat.TERMINAL, quiet=False).splitlines()
    told = "v2 model runner, asked for, its kernels under Triton's interpreter"
    assert f"runner: {told}" in lines
    none = render(passed(subject=subject(runner=None)), TextFormat.MARKDOWN, quiet=False)
    assert "- runner: no engine was started" in none


def test_figures_and_ratios_are_told_apart() -> None:
    """They are different statistics of the same stretches, and the report says so."""
    for format_ in (TextFormat.TERMINAL, TextFormat.MARKDOWN):
        assert "they are not quotients of the figures" in render(passed(), format_, quiet=False)
        assert "quotients" not in render(partial(), format_, quiet=False)


def test_no_prompts_are_no_numbers_of_tokens() -> None:
    """Of L1 alone."""
    found = partial()
    bare = replace(found, subject=replace(found.subject, prompts=""))
    assert dict(phrases.facts(bare))["prompts"] == "none were used, seed 1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--level", "l6"], "'--level': 'l6' is not one of"),
        (["--format", "sarif"], "'--format': 'sarif' is not one of"),
        (["--budget", "0"], "error: --budget 0\nexpected: a whole number from 1 to 128"),
    ],
)
def test_words_of_usage_errors(arguments: list[str], words: str) -> None:
    """Nothing of how the command line is parsed, and no Python."""
    result = CliRunner().invoke(app, ["verify", *arguments])
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Value error" not in result.stderr


def test_choices_may_be_written_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level is a level."""
    seen: list[options.Options] = []

    def action(given: options.Options, *_: object) -> Report:
        seen.append(given)
        return passed()

    arguments = ["--level", "l1", "--level", "L5", "--dtype", "Float32", "--runner", "V1"]
    assert run(monkeypatch, action, *arguments)[0] == 0
    assert (seen[0].levels, seen[0].dtype, seen[0].runner) == (("L1", "L5"), "float32", "v1")


def test_quiet_does_what_its_help_says() -> None:
    """The verdict, and whether a tree pays."""
    assert render(passed(), TextFormat.TERMINAL, quiet=True).count("\n") == 2
    found = CliRunner().invoke(app, ["verify", "--help"]).stdout
    assert "only the verdict and whether a tree pays" in " ".join(found.split())


def test_what_failed_is_said_first() -> None:
    lines = render(failed(), TextFormat.TERMINAL, quiet=False).splitlines()
    assert lines[0] == "verify: failed: imports, L1, L5 failed: do not serve with this patch"
    assert "imports: failed: vllm.config.vllm: ImportError: no" in lines
    assert "log: ValueError: no" in lines
    assert any("not run" in line and "the stock chain does not run" in line for line in lines)


def test_what_was_not_run_is_never_passed() -> None:
    text = render(REPORTS["partial"](), TextFormat.TERMINAL, quiet=False)
    assert text.startswith(
        "verify: incomplete: what was run passed, and not everything was run: L2"
    )
    assert "level: L5: not run" in text
    assert "level: L5: passed" not in text


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("name", REPORTS)
def test_a_terminal_of_any_width(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screens.become(monkeypatch, columns)
    text = render(REPORTS[name](), TextFormat.TERMINAL, quiet=False)
    lines = screens.shown(text)
    assert all(len(line) <= columns for line in lines)
    assert not HIDDEN.search("\n".join(lines))
    assert f" {REPORTS[name]().verdict.upper()} " in lines[0]
    short = screens.shown(render(REPORTS[name](), TextFormat.TERMINAL, quiet=True))
    assert len(short) < len(lines)


@pytest.mark.parametrize("format_", [TextFormat.TERMINAL, TextFormat.MARKDOWN])
def test_text_is_safe_to_print(format_: TextFormat) -> None:
    text = render(REPORTS["hostile"](), format_, quiet=False)
    assert not HIDDEN.search(text)


def test_markdown() -> None:
    text = render(failed(), TextFormat.MARKDOWN, quiet=False)
    assert text.startswith("**failed**: imports, L1, L5 failed")
    assert "| L1 | the walk and the builds are right | failed |" in text
    assert "```text\nTraceback (most recent call last):\nValueError: no\n```" in text
    assert "@someone" not in re.sub(
        r"`[^`]*`", "", render(REPORTS["hostile"](), TextFormat.MARKDOWN, quiet=False)
    )


@pytest.mark.parametrize(("name", "code"), [("passed", 0), ("partial", 0), ("failed", 1)])
def test_exit_codes(name: str, code: int) -> None:
    assert exit_code(REPORTS[name]()) == code


def run(monkeypatch: pytest.MonkeyPatch, action: Any, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(perform, "verify", action)
    result = CliRunner().invoke(app, ["verify", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_line_becomes_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[options.Options] = []

    def action(given: options.Options, say: Callable[[str], None], _: object) -> Report:
        say("decoding")
        seen.append(given)
        return failed()

    arguments = "/env --model m --drafter d --method eagle3 --budget 16 --budget 64 --level L5"
    more = (
        "--dtype",
        "bfloat16",
        "--engine",
        '{"tensor_parallel_size": 2}',
        "--seed",
        "7",
        "--runner",
        "v2",
    )
    code, out, err = run(monkeypatch, action, *arguments.split(), *more, "--format", "json")
    assert code == 1
    assert re.fullmatch(r"\[\d+:\d\d\] decoding\n", err)
    assert errors(json.loads(out)) == []
    (given,) = seen
    assert (given.model, given.drafter, given.method) == ("m", "d", "eagle3")
    assert (given.budgets, given.levels, given.dtype) == ((16, 64), ("L5",), "bfloat16")
    assert (given.engine, given.seed) == ({"tensor_parallel_size": 2}, 7)
    assert tuple(command.Level) == options.LEVELS
    assert tuple(command.Method) == options.METHODS
    assert tuple(command.Dtype) == options.DTYPES
    assert tuple(command.Runner) == options.RUNNERS
    assert given.runner == "v2"
    assert run(monkeypatch, action, "--quiet")[2] == ""
    assert seen[1] == options.Options()


def test_a_far_side_that_dies_leaves_its_last_words_on_stderr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def action(*_: object) -> Report:
        failure = FarSideError("it died", expected="the last word", hint="nvidia-smi")
        failure.log = ("OutOfMemoryError: \x1b[31mno",)
        raise failure

    code, out, err = run(monkeypatch, action)
    assert (code, out) == (5, "")
    assert err.startswith("target: OutOfMemoryError: \\x1b[31mno\nerror: it died\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--engine", "[1]"],
        ["--engine", "{"],
        ["--level", "L6"],
        ["--method", "medusa"],
        ["--runner", "v3"],
        ["--budget", "0"],
        ["--model", "m"],
        ["--tokens", "3"],
    ],
)
def test_usage_errors(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    def action(*_: object) -> Report:
        raise AssertionError("nothing may run")

    code, out, _ = run(monkeypatch, action, *arguments)
    assert (code, out) == (2, "")
