"""Reports kept between runs, for installs whose bytes have not changed.

A report is found by the install's place and record, and believed only if no file's stamp has
changed since, and the files that it cites still have the very bytes that it quotes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from .install.check import RecordCheck
from .result import Report, to_json
from .targets.cache import cache_folder
from .targets.source import Target

FORMAT = 1


class Reports:
    """The kept report of one open target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._stamps = {path: info.stamp for path, info in target.source.files().items()}

    @property
    def _file(self) -> Path:
        install = self._target.install
        parts = [self._target.source.location, str(install.distribution), _rules_digest()]
        if self._target.seen is not None:
            # Many machines have an install at the same place.
            parts.append(self._target.seen.fingerprint)
        named = "\0".join(parts)
        return cache_folder() / "reports" / f"{hashlib.sha256(named.encode()).hexdigest()}.json"

    def load(self) -> Report | None:
        """The report of an earlier run; None where anything may have changed."""
        try:
            kept = json.loads(self._file.read_bytes())
            if kept["format"] != FORMAT or kept["stamps"] != self._digest_of_stamps():
                return None
            report: Report = build(Report, kept["report"] | {"tool_version": kept["tool_version"]})
            digests = {path: (stamp, value) for path, (stamp, value) in kept["digests"].items()}
            if not self._cited(report, kept["cited"]):
                return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        # What the metadata says, and what differs from the record, is read afresh.
        if self._target.seen is None:
            check = RecordCheck(self._target.source, self._target.record, digests)
            differences = check.finish()
        else:
            differences = self._target.seen.differences
        install = differences.onto(self._target.install)
        return replace(report, target=self._target.name, install=install)

    def save(self, report: Report, digests: Mapping[str, tuple[str, str]]) -> None:
        """Keep a report; a cache that cannot be written is no error."""
        body = to_json(report)
        kept = {
            "format": FORMAT,
            "stamps": self._digest_of_stamps(),
            "digests": digests,
            "cited": {path: self._hash(path) for path in _cited_files(report)},
            "tool_version": report.tool_version,
            "report": {key: body[key] for key in body if key not in {"schema_version", "tool"}},
        }
        with contextlib.suppress(OSError):
            _write(self._file, json.dumps(kept).encode())

    def _digest_of_stamps(self) -> str:
        # A plug-in is named by metadata that is no file of the source.
        seen = sorted(self._stamps.items()), self._target.plugins
        return hashlib.sha256(repr(seen).encode()).hexdigest()

    def _cited(self, report: Report, known: Mapping[str, str]) -> bool:
        return all(known[path] == self._hash(path) for path in _cited_files(report))

    def _hash(self, path: str) -> str:
        return hashlib.sha256(self._target.source.read(path)).hexdigest()


def _cited_files(report: Report) -> list[str]:
    cited = {item.file for item in report.evidence}
    return sorted(cited | {call.file for item in report.evidence for call in item.calls})


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


@cache
def _rules_digest() -> str:
    """What changes when the analyzers do: their files' sizes and times."""
    root = Path(__file__).resolve().parent
    seen = [
        (str(path.relative_to(root)), info.st_size, info.st_mtime_ns)
        for path in sorted(root.rglob("*.py"))
        if (info := path.stat())
    ]
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def build(kind: Any, value: Any) -> Any:
    """A frozen dataclass from its JSON form, checked against the annotations as it is built.

    Raises:
        TypeError, ValueError, KeyError: the value does not have the form.
    """
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{f.name: build(hints[f.name], value[f.name]) for f in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(build(arguments[0], item) for item in value)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {build(arguments[0], k): build(arguments[1], v) for k, v in value.items()}
    if origin in {typing.Union, types.UnionType}:
        return None if value is None else build(arguments[0], value)
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind}, found {type(value).__name__}")
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
