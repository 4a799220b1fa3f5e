"""What `kernels/compile.py` found, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

from .usage import TARGETS, Outcome


def arranged(outcomes: list[Outcome]) -> list[Outcome]:
    """The targets of a variant side by side; units and variants in the order they came in."""
    order = {variant: i for i, variant in enumerate(dict.fromkeys(map(_variant_of, outcomes)))}
    columns = list(TARGETS)
    return sorted(outcomes, key=lambda o: (order[_variant_of(o)], columns.index(o.target)))


def _variant_of(outcome: Outcome) -> tuple[str, str, str, int]:
    return (outcome.unit, outcome.kernel, outcome.label, outcome.num_warps)


def as_text(outcomes: list[Outcome]) -> str:
    """One block per variant, one column per target, then what is wrong and the totals."""
    blocks = []
    for (unit, kernel, label, warps), group in groupby(outcomes, key=_variant_of):
        blocks.append("\n".join([f"{unit}: {kernel}  {label}  warps={warps}", *_rows(list(group))]))
    problems = [
        f"{o.unit}: {o.kernel}  {o.label}  {o.target}: {problem}"
        for o in outcomes
        if (problem := o.problem()) is not None
    ]
    totals = f"{len(outcomes)} compilations, {len(problems)} with problems"
    return "\n\n".join([*blocks, "\n".join([*problems, totals])]) + "\n"


def _rows(group: list[Outcome]) -> Iterator[str]:
    yield f"  {'':10}" + "".join(f"{outcome.target:>10}" for outcome in group)
    for title, field in (
        ("registers", "registers"),
        ("shared B", "shared"),
        ("spilled B", "spill_bytes"),
    ):
        cells = (str(getattr(outcome, field, "failed")) for outcome in group)
        yield f"  {title:10}" + "".join(f"{cell:>10}" for cell in cells)


def as_json(outcomes: list[Outcome]) -> str:
    """`{"shared_limits": {target: bytes}, "kernels": [{…, "problem": text or null}]}`."""
    limits = {name: target.shared_limit for name, target in TARGETS.items()}
    kernels = [{**asdict(outcome), "problem": outcome.problem()} for outcome in outcomes]
    return json.dumps({"shared_limits": limits, "kernels": kernels}, indent=2) + "\n"
