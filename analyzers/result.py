"""The report of an inspection: frozen data, and its one JSON form.

`to_json` is a contract: `cli/schema/inspect-1.json` describes it and a test holds the two together.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

SCHEMA_VERSION = 1


class Stage(enum.StrEnum):
    """One of the four stages of tree speculative decoding, in the order in which a step runs."""

    DRAFTING = "drafting"
    ATTENTION = "attention"
    VERIFICATION = "verification"
    COMMIT = "commit"


class StageVerdict(enum.StrEnum):
    """What one stage of one engine path does, proved from its code."""

    TREE = "tree"
    LINEAR = "linear"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Verdict(enum.StrEnum):
    """What an engine path, or the whole install, verifies."""

    TREE = "tree"
    LINEAR = "linear"
    UNKNOWN = "unknown"


class EnginePath(enum.StrEnum):
    """One of the three engines that vLLM releases ship, each with a verifier of its own."""

    V0 = "v0-engine"
    V1 = "v1-runner"
    V2 = "v2-runner"


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of a `vllm.*` group in the inspected environment."""

    group: str
    name: str
    value: str
    distribution: str = ""


@dataclass(frozen=True, slots=True)
class OtherInstall:
    """A second vLLM in the same environment, which imports would not find first."""

    distribution: str
    version: str | None
    location: str


@dataclass(frozen=True, slots=True)
class Install:
    """What is installed, from metadata alone; `None` where the target does not say."""

    distribution: str | None
    version: str | None
    location: str
    python: str | None
    torch: str | None
    triton: str | None
    editable: bool
    modified: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    others: tuple[OtherInstall, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One step of the call path that reaches a piece of evidence."""

    file: str
    line: int
    symbol: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in the installed code that shows something.

    `file` is relative to the parent of the `vllm` package; `line`, `column` count from 1.
    `supports` is the stage verdict that the place argues for.
    """

    id: str
    rule: str
    stage: Stage
    supports: StageVerdict
    file: str
    line: int
    end_line: int
    column: int
    symbol: str
    quote: str
    message: str
    path: EnginePath
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class StageResult:
    """The verdict on one stage, the ids of what proves it, and the reason in one sentence."""

    verdict: StageVerdict
    evidence: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PathResult:
    """The verdict on one engine path; `default` is None where the code leaves it to the model."""

    path: EnginePath
    default: bool | None
    verdict: Verdict
    summary: str
    stages: Mapping[Stage, StageResult]


@dataclass(frozen=True, slots=True)
class Methods:
    """What this install offers to `speculative_config`, read from its code."""

    speculative: tuple[str, ...] = ()
    rejection: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be read or parsed, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was looked at: a negative verdict is worth as much as this."""

    files: int
    bytes: int
    parsed: int
    rules: tuple[str, ...]
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `ddtree inspect host`."""

    target: str
    tool_version: str
    install: Install
    verdict: Verdict
    summary: str
    paths: tuple[PathResult, ...]
    evidence: tuple[Evidence, ...]
    methods: Methods
    coverage: Coverage
    notes: tuple[str, ...] = field(default=())


def to_json(report: Report) -> dict[str, Any]:
    """The report as the documented JSON object (schema version 1)."""
    body = {f.name: plain(getattr(report, f.name)) for f in fields(report)}
    version = body.pop("tool_version")
    head = {"schema_version": SCHEMA_VERSION, "tool": {"name": "ddtree", "version": version}}
    return head | body


def plain(value: Any) -> Any:
    """Dataclasses, enums and tuples as what JSON knows."""
    if isinstance(value, enum.StrEnum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value
