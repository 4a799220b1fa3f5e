"""A failure as text for a person and as data for a script."""

from __future__ import annotations

import json
import platform

from ... import __version__
from ...analyzers.errors import DdtreeError
from ...analyzers.result import SCHEMA_VERSION
from ..options import Format
from .text import clean


def as_text(failure: DdtreeError) -> str:
    """What was found, what was expected, one command to run next."""
    lines = [("error", failure.found), ("expected", failure.expected), ("run", failure.hint)]
    return "".join(f"{label}: {clean(text)}\n" for label, text in lines)


def as_data(failure: DdtreeError, format_: Format) -> str:
    """The failure for stdout in a machine's format; empty for a person's."""
    if format_ == Format.JSON:
        return json.dumps(as_json(failure), indent=2) + "\n"
    if format_ == Format.SARIF:
        from .sarif import failed_run, log

        return json.dumps(log(failed_run(failure)), indent=2) + "\n"
    return ""


def as_json(failure: DdtreeError) -> dict[str, object]:
    """The failure as the object that the schemas describe."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "ddtree", "version": __version__},
        "error": {
            "found": failure.found,
            "expected": failure.expected,
            "hint": failure.hint,
            "exit_code": failure.exit_code,
        },
    }


def defect(kind: type[BaseException], failure: BaseException) -> DdtreeError:
    """What a person is told when ddtree itself is wrong."""
    return DdtreeError(
        f"a defect of ddtree {__version__} on Python {platform.python_version()}: "
        f"{kind.__name__}: {failure}",
        expected="an error message that names its cause; please report this one",
        hint="the same command with DDTREE_DEBUG=1 in its environment, for the traceback",
    )
