"""The report as SARIF 2.1.0, for code scanning dashboards and editors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from ....analyzers.result import (
    Call,
    Evidence,
    Install,
    Report,
    StageVerdict,
    Unreadable,
    to_json,
)
from ...rulebook import RuleHelp
from .. import words
from ..sarif import log, message, tool

_BASE = "VLLM_PARENT"
_ARCHIVES = (".whl", ".gz", ".tgz", ".tar", ".zip")


def render(report: Report, book: tuple[RuleHelp, ...], exit_code: int) -> str:
    """One run: the rules with their help, a result per evidence, verdicts in the properties."""
    return json.dumps(log(run(report, book, exit_code)), indent=2) + "\n"


def run(report: Report, book: tuple[RuleHelp, ...], exit_code: int) -> dict[str, Any]:
    """The report as a run of its own."""
    rules = _rules(report, book)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    seen: Counter[str] = Counter()
    plain = to_json(report)
    return {
        "tool": tool(rules),
        "originalUriBaseIds": {_BASE: _base(report.install)},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, exit_code)],
        "results": [_result(item, index, seen) for item in words.in_order(report.evidence)],
        # All of the JSON report but what SARIF has places of its own for.
        "properties": {k: v for k, v in plain.items() if k not in ("evidence", "tool")},
    }


def _rules(report: Report, book: tuple[RuleHelp, ...]) -> list[dict[str, Any]]:
    known = {entry.name: _rule(entry) for entry in book}
    cited = {item.rule for item in report.evidence} | set(report.coverage.rules)
    return [known.get(name, {"id": name}) for name in sorted(cited | known.keys())]


def _rule(entry: RuleHelp) -> dict[str, Any]:
    return {
        "id": entry.name,
        "shortDescription": message(entry.summary),
        "fullDescription": message(entry.help),
        "help": message(entry.help),
        "defaultConfiguration": {"level": _level(entry.supports)},
        "properties": {"stage": entry.stage.value, "supports": entry.supports.value},
    }


def _level(supports: StageVerdict) -> str:
    return "warning" if supports == StageVerdict.LINEAR else "note"


def _base(install: Install) -> dict[str, Any]:
    base = {"description": message("The folder or archive that holds the vllm package.")}
    # Nothing can be opened below an archive, so only a folder gets an address.
    if install.location.startswith("/") and not install.location.endswith(_ARCHIVES):
        return base | {"uri": f"file://{_quoted(install.location.rstrip('/'))}/"}
    return base


def _invocation(report: Report, exit_code: int) -> dict[str, Any]:
    return {
        "executionSuccessful": True,
        "exitCode": exit_code,
        "toolExecutionNotifications": [_unread(item) for item in report.coverage.unreadable],
    }


def _unread(item: Unreadable) -> dict[str, Any]:
    location = {"physicalLocation": {"artifactLocation": _artifact(item.file)}}
    return {"level": "warning", "message": message(item.reason), "locations": [location]}


def _result(item: Evidence, index: dict[str, int], seen: Counter[str]) -> dict[str, Any]:
    identity = _identity(item)
    seen[identity] += 1
    result = {
        "ruleId": item.rule,
        "ruleIndex": index[item.rule],
        "level": _level(item.supports),
        "message": message(item.message),
        "locations": [_location(item)],
        "partialFingerprints": {"meaning/v1": _digest(f"{identity}\0{seen[identity]}")},
        "properties": {
            "id": item.id,
            "path": item.path.value,
            "stage": item.stage.value,
            "supports": item.supports.value,
        },
    }
    return result | ({"codeFlows": [_flow(item)]} if words.callers(item) else {})


def _identity(item: Evidence) -> str:
    # No line numbers, so that a finding keeps its fingerprint when the code above it changes.
    quoted = " ".join(item.quote.split())
    return "\0".join([item.rule, item.path, item.stage, item.file, item.symbol, quoted])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _location(item: Evidence) -> dict[str, Any]:
    region = {
        "startLine": item.line,
        "startColumn": item.column,
        "endLine": item.end_line,
        "snippet": {"text": item.quote},
    }
    place = {"artifactLocation": _artifact(item.file), "region": region}
    return {"physicalLocation": place, "logicalLocations": _logical(item.file, item.symbol)}


def _flow(item: Evidence) -> dict[str, Any]:
    steps = [_call(call) for call in item.calls] + [_location(item)]
    return {"threadFlows": [{"locations": [{"location": step} for step in steps]}]}


def _call(call: Call) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(call.file), "region": {"startLine": call.line}}
    return {"physicalLocation": place, "message": message(call.symbol)}


def _logical(file: str, symbol: str) -> list[dict[str, str]]:
    module = ".".join(PurePosixPath(file).with_suffix("").parts)
    return [{"name": symbol.rpartition(".")[2], "fullyQualifiedName": f"{module}.{symbol}"}]


def _artifact(file: str) -> dict[str, str]:
    return {"uri": _quoted(file), "uriBaseId": _BASE}


def _quoted(path: str) -> str:
    # PEP 383: an undecodable byte of a file name is a lone surrogate, and a byte again in a URI.
    return quote(path.encode("utf-8", "surrogateescape"))
