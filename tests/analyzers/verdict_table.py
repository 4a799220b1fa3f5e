"""Verdicts against truths: `make verdicts` prints a row per kind of input.

A wrong cell is a `tree` or a `linear` that is not true; an `unknown` where something was to be
found is a miss, and is listed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ddtree.analyzers.result import EnginePath, Stage, StageVerdict
from tests.analyzers import fork, inputs, mini, overlay, reports, walks_moved
from tests.renamer import Renamer

TREE, LINEAR, UNKNOWN = StageVerdict.TREE, StageVerdict.LINEAR, StageVerdict.UNKNOWN
ABSENT = StageVerdict.ABSENT
Truth = Mapping[Stage, StageVerdict]


@dataclass(frozen=True, slots=True)
class Row:
    """One input: what kind it is of, its name, its files, and what is true of some stages."""

    kind: str
    name: str
    files: Mapping[str, str]
    truth: Truth


@dataclass(frozen=True, slots=True)
class Judged:
    """A row with the verdicts on it."""

    row: Row
    found: Truth

    def cells(self, stage: Stage) -> str:
        """`right`, `wrong` or `miss` for a stage; empty if nothing is said of it."""
        if stage not in self.row.truth:
            return ""
        truth, found = self.row.truth[stage], self.found[stage]
        if found is truth:
            return "right"
        # What is there must not be called absent either.
        denied = found is ABSENT and truth in {TREE, LINEAR}
        return "wrong" if found in {TREE, LINEAR} or denied else "miss"


def rows() -> Iterator[Row]:
    """Every input of a tiny engine, positive and negative, changed and renamed."""
    for name, mutation in walks_moved.every():
        make, truth = walks_moved.MUTATIONS[mutation]
        files = make(inputs.POSITIVES[name])
        yield Row(f"walk: {mutation}", name, files, {Stage.VERIFICATION: truth})
    for name, module in inputs.LINEAR.items():
        yield Row("chain", name, mini.files(module), {Stage.VERIFICATION: LINEAR})
        renamed = Renamer(3, strip=True).files(mini.files(module))
        yield Row("chain, renamed", name, renamed, {Stage.VERIFICATION: LINEAR})
    for name, module in inputs.UNCLEAR.items():
        yield Row("nothing tells", name, mini.files(module), {Stage.VERIFICATION: UNKNOWN})
    for name, module in inputs.POSITIVES.items():
        yield from _forks(name, mini.files(module))


def _forks(name: str, walk: Mapping[str, str]) -> Iterator[Row]:
    every = dict.fromkeys(Stage, TREE)
    whole = dict(walk) | fork.files(commits=True)
    masked = "vllm/v1/attention/backends/masked.py"
    unmasked = {masked: fork.BACKEND.replace("scores + metadata.bias", "scores")}
    yield Row("fork: whole", name, whole, every)
    without = dict(walk) | fork.files(commits=False)
    yield Row("fork: no commit", name, without, every | {Stage.COMMIT: ABSENT})
    yield Row("fork: mask unused", name, whole | unmasked, every | {Stage.ATTENTION: UNKNOWN})


def judge(row: Row) -> Judged:
    """Inspect one input."""
    with tempfile.TemporaryDirectory() as folder:
        report = reports.inspect(overlay.mini_install(Path(folder), row.files))
    stages = reports.by_path(report)[EnginePath.V1].stages
    return Judged(row, {stage: found.verdict for stage, found in stages.items()})


def table(judged: list[Judged]) -> Table:
    """A row per kind of input: how many cells of each stage are right, wrong, missed."""
    made = Table("input", *(stage.value for stage in Stage), title="right / wrong / missed")
    for kind in dict.fromkeys(one.row.kind for one in judged):
        of_kind = [one for one in judged if one.row.kind == kind]
        counts = []
        for stage in Stage:
            cells = [one.cells(stage) for one in of_kind]
            said = [cells.count(word) for word in ("right", "wrong", "miss")]
            counts.append(" / ".join(map(str, said)) if any(said) else "")
        made.add_row(kind, *counts)
    return made


def main() -> int:
    """Print the table and every cell that is not right; 1 if one is wrong."""
    console = Console(width=100)
    judged = [judge(row) for row in rows()]
    console.print(table(judged))
    wrong = 0
    for one in judged:
        for stage, truth in one.row.truth.items():
            if (cell := one.cells(stage)) != "right":
                wrong += cell == "wrong"
                said = f"{one.row.kind}, {one.row.name}: {stage.value} is {truth.value}"
                console.print(f"{cell}: {said}, found {one.found[stage].value}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
