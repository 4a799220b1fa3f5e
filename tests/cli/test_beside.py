"""A package beside vLLM in every format of the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, Draft202012Validator
from typer.testing import CliRunner

from ddtree.cli.app import app
from tests.analyzers import grafts, plugins
from tests.cli.test_json import schema
from tests.cli.test_sarif import SCHEMA


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DDTREE_CACHE", str(tmp_path / "cache"))
    return grafts.install(tmp_path, grafts.LAYOUTS["table"], plugins.WALK)


def shown(place: Path, form: str) -> str:
    result = CliRunner().invoke(app, ["inspect", "host", str(place), "--format", form])
    assert result.exit_code == 0
    return result.stdout


def test_json_keeps_its_schema(place: Path) -> None:
    document = json.loads(shown(place, "json"))

    Draft202012Validator(schema("inspect-1")).validate(document)
    assert document["install"]["modified"] == [grafts.RUNNER]
    assert "graft/accept.py" in {item["file"] for item in document["evidence"]}


def test_sarif_names_the_file_beside_vllm(place: Path) -> None:
    document = json.loads(shown(place, "sarif"))

    Draft4Validator(SCHEMA).validate(document)
    assert '"graft/accept.py"' in json.dumps(document)


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_texts_name_the_package_and_the_condition(form: str, place: Path) -> None:
    text = " ".join(shown(place, form).split())

    assert "imports graft, a package beside vLLM" in text
    assert "graft/accept.py" in text
    assert "depends on the configuration" in text
