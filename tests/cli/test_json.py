"""The JSON contract: schema, dataclasses and output say the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import fields
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ddtree.analyzers import compare, result
from ddtree.analyzers.errors import ArchiveError, ConflictError, DdtreeError, UsageError
from ddtree.cli.options import Format
from ddtree.cli.render import error
from ddtree.cli.render.comparison import json as comparison_json
from ddtree.cli.render.report import json as report_json

from .samples import REPORTS, report

REPORTED = ("inspect-1", "compare-1")
NAMES = (*REPORTED, "patch-1")


def schema(name: str) -> dict[str, Any]:
    text = files("ddtree.cli").joinpath("schema", f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def errors(name: str, document: Any) -> list[str]:
    return [problem.message for problem in Draft202012Validator(schema(name)).iter_errors(document)]


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("name", REPORTS)
def test_every_sample_follows_the_contract(name: str) -> None:
    text = report_json.render(REPORTS[name]())
    assert text.isascii()
    assert errors("inspect-1", json.loads(text)) == []


@pytest.mark.parametrize("one", REPORTS)
@pytest.mark.parametrize("other", REPORTS)
def test_every_comparison_follows_the_contract(one: str, other: str) -> None:
    compared = compare.compare(REPORTS[one](), REPORTS[other]())
    assert errors("compare-1", json.loads(comparison_json.render(compared))) == []


@pytest.mark.parametrize("kind", [UsageError, ArchiveError, ConflictError, DdtreeError])
@pytest.mark.parametrize("name", NAMES)
def test_a_failure_follows_the_contract(kind: type[DdtreeError], name: str) -> None:
    failure = kind("no vllm in \udcff", expected="one", hint="ddtree inspect host x")
    document = json.loads(error.as_data(failure, Format.JSON))
    assert errors(name, document) == []
    assert document["error"]["exit_code"] == kind.exit_code


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        (
            "inspect-1",
            {
                "Plugin": result.Plugin,
                "OtherInstall": result.OtherInstall,
                "Install": result.Install,
                "Call": result.Call,
                "Evidence": result.Evidence,
                "StageResult": result.StageResult,
                "PathResult": result.PathResult,
                "Methods": result.Methods,
                "Unreadable": result.Unreadable,
                "Coverage": result.Coverage,
            },
        ),
        (
            "compare-1",
            {
                "Call": result.Call,
                "Evidence": result.Evidence,
                "Side": compare.Side,
                "StageChange": compare.StageChange,
                "PathChange": compare.PathChange,
                "Moved": compare.Moved,
                "FactChange": compare.FactChange,
                "SetChange": compare.SetChange,
            },
        ),
    ],
)
def test_schema_and_dataclasses_have_the_same_fields(name: str, kinds: dict[str, type]) -> None:
    definitions = schema(name)["$defs"]
    for key, kind in kinds.items():
        declared = {field.name for field in fields(kind)}
        assert set(definitions[key]["properties"]) == declared, key
        assert set(definitions[key]["required"]) == declared, key
        assert definitions[key]["additionalProperties"] is False, key


@pytest.mark.parametrize(
    ("name", "key", "kind"),
    [("inspect-1", "Report", result.Report), ("compare-1", "Comparison", compare.Comparison)],
)
def test_the_outermost_object_has_the_fields_of_its_dataclass(
    name: str, key: str, kind: type
) -> None:
    head = {"schema_version", "tool"}
    declared = {field.name for field in fields(kind)} - {"tool_version"}
    assert set(schema(name)["$defs"][key]["required"]) == declared | head


@pytest.mark.parametrize("name", REPORTED)
@pytest.mark.parametrize("kind", ["Stage", "StageVerdict", "Verdict", "EnginePath"])
def test_schema_and_enumerations_have_the_same_values(name: str, kind: str) -> None:
    values = [member.value for member in getattr(result, kind)]
    assert schema(name)["$defs"][kind]["enum"] == values


def test_what_the_two_schemas_share_is_the_same() -> None:
    one, other = (schema(name)["$defs"] for name in REPORTED)
    shared = one.keys() & other.keys()
    assert {"Evidence", "Call", "Failure"} <= shared
    assert {key: one[key] for key in shared} == {key: other[key] for key in shared}
    third = schema("patch-1")["$defs"]
    assert {key: one[key] for key in ("Tool", "Error", "Failure")}.items() <= third.items()


def _drop(*keys: str | int) -> Callable[[Any], None]:
    def breaking(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return breaking


def _put(value: object, *keys: str | int) -> Callable[[Any], None]:
    def breaking(document: Any) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return breaking


@pytest.mark.parametrize(
    "breaking",
    [
        _drop("verdict"),
        _drop("paths", 0, "stages", "commit"),
        _drop("evidence", 0, "quote"),
        _drop("coverage", "unreadable"),
        _put("absent", "verdict"),
        _put("maybe", "paths", 0, "stages", "drafting", "verdict"),
        _put([], "paths", 0, "stages", "verification", "evidence"),
        _put(0, "evidence", 0, "line"),
        _put("1", "schema_version"),
        _put("anything", "install", "colour"),
        _put(["E1"], "evidence", 0, "id"),
    ],
)
def test_the_schema_catches_a_broken_contract(breaking: Callable[[Any], None]) -> None:
    document = json.loads(report_json.render(report()))
    broken = copy.deepcopy(document)
    breaking(broken)
    assert errors("inspect-1", document) == []
    assert errors("inspect-1", broken) != []
