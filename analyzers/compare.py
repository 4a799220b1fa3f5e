"""What changes between two inspected installs: pure, from two reports.

Evidence is matched by what it says (rule, engine path, stage, symbol) and not by where it stands:
line numbers and ids change with every release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from .result import (
    EnginePath,
    Evidence,
    Install,
    PathResult,
    Report,
    Stage,
    StageVerdict,
    Verdict,
)

# What a piece of evidence says, whatever its place: engine path, stage, rule, symbol.
Meaning = tuple[EnginePath, Stage, str, str]


@dataclass(frozen=True, slots=True)
class StageChange:
    """One stage of one engine path on both sides; `None` where the path does not exist."""

    stage: Stage
    before: StageVerdict | None
    after: StageVerdict | None

    @property
    def changed(self) -> bool:
        """Whether the two sides differ."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class PathChange:
    """One engine path on both sides, with all four stages; `None` where it does not exist.

    `default_before` and `default_after` say whether the path is the default; `None` where the code
    leaves it to the model, or where the path does not exist.
    """

    path: EnginePath
    before: Verdict | None
    after: Verdict | None
    default_before: bool | None
    default_after: bool | None
    stages: tuple[StageChange, ...]

    @property
    def changed(self) -> bool:
        """Whether the verdict, the default or a stage differs."""
        sides_differ = self.before != self.after or self.default_before != self.default_after
        return sides_differ or any(stage.changed for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Moved:
    """The same evidence at another place."""

    before: Evidence
    after: Evidence


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact of the install on both sides; `None` where it is not stated."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class SetChange:
    """What a named set of values loses and gains."""

    name: str
    lost: tuple[str, ...]
    gained: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two compared installs."""

    target: str
    distribution: str | None
    version: str | None
    verdict: Verdict
    summary: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of `ddtree inspect compare`.

    `methods`, `facts` and `lists` hold only what differs; `lists` are the install's lists of files,
    plug-ins and other vLLM installs.
    """

    before: Side
    after: Side
    summary: str
    paths: tuple[PathChange, ...]
    lost: tuple[Evidence, ...]
    gained: tuple[Evidence, ...]
    moved: tuple[Moved, ...]
    methods: tuple[SetChange, ...]
    facts: tuple[FactChange, ...]
    lists: tuple[SetChange, ...]


def compare(before: Report, after: Report) -> Comparison:
    """What going from the first install to the second gives and takes away."""
    paths = _paths(before, after)
    lost, gained, moved = _evidence(before.evidence, after.evidence)
    return Comparison(
        before=_side(before),
        after=_side(after),
        summary=_summary(before.verdict, after.verdict, paths),
        paths=paths,
        lost=lost,
        gained=gained,
        moved=moved,
        methods=_changes(_methods(before), _methods(after)),
        facts=_facts(before.install, after.install),
        lists=_changes(_lists(before.install), _lists(after.install)),
    )


def _side(report: Report) -> Side:
    install = report.install
    return Side(
        target=report.target,
        distribution=install.distribution,
        version=install.version,
        verdict=report.verdict,
        summary=report.summary,
    )


def _summary(before: Verdict, after: Verdict, paths: tuple[PathChange, ...]) -> str:
    head = (
        f"verification stays {after}" if before == after else f"verification: {before} -> {after}"
    )
    gained = _tree_stages(paths, gained=True)
    lost = _tree_stages(paths, gained=False)
    parts = [head]
    parts += [f"gives {', '.join(gained)}"] if gained else []
    parts += [f"takes away {', '.join(lost)}"] if lost else []
    return "; ".join(parts)


def _tree_stages(paths: tuple[PathChange, ...], *, gained: bool) -> list[str]:
    return [
        f"tree {stage.stage} ({path.path})"
        for path in paths
        for stage in path.stages
        if stage.changed and (stage.after if gained else stage.before) == StageVerdict.TREE
    ]


def _paths(before: Report, after: Report) -> tuple[PathChange, ...]:
    old = {result.path: result for result in before.paths}
    new = {result.path: result for result in after.paths}
    return tuple(_path(p, old.get(p), new.get(p)) for p in EnginePath if p in old or p in new)


def _path(path: EnginePath, old: PathResult | None, new: PathResult | None) -> PathChange:
    return PathChange(
        path=path,
        before=old.verdict if old else None,
        after=new.verdict if new else None,
        default_before=old.default if old else None,
        default_after=new.default if new else None,
        stages=tuple(StageChange(s, _stage(old, s), _stage(new, s)) for s in Stage),
    )


def _stage(result: PathResult | None, stage: Stage) -> StageVerdict | None:
    return result.stages[stage].verdict if result else None


def _evidence(
    before: Iterable[Evidence], after: Iterable[Evidence]
) -> tuple[tuple[Evidence, ...], tuple[Evidence, ...], tuple[Moved, ...]]:
    old, new = _by_meaning(before), _by_meaning(after)
    lost: list[Evidence] = []
    gained: list[Evidence] = []
    moved: list[Moved] = []
    for key in sorted({*old, *new}, key=_rank):
        for one, other in _pairs(old.get(key, []), new.get(key, [])):
            if one is None and other is not None:
                gained.append(other)
            elif other is None and one is not None:
                lost.append(one)
            elif one is not None and other is not None and _place(one) != _place(other):
                moved.append(Moved(one, other))
    return tuple(lost), tuple(gained), tuple(moved)


def _pairs(
    old: list[Evidence], new: list[Evidence]
) -> list[tuple[Evidence | None, Evidence | None]]:
    # Evidence that stayed where it was is paired first, so that a twin which appears above it is
    # reported as gained and not as a chain of moves.
    kept = {_place(e) for e in old} & {_place(e) for e in new}
    rest_old = [e for e in old if _place(e) not in kept]
    rest_new = [e for e in new if _place(e) not in kept]
    return list(zip_longest(rest_old, rest_new))


def _by_meaning(evidence: Iterable[Evidence]) -> Mapping[Meaning, list[Evidence]]:
    groups: dict[Meaning, list[Evidence]] = defaultdict(list)
    for item in sorted(evidence, key=_place):
        groups[item.path, item.stage, item.rule, item.symbol].append(item)
    return groups


def _rank(key: Meaning) -> tuple[int, int, str, str]:
    path, stage, rule, symbol = key
    return list(EnginePath).index(path), list(Stage).index(stage), rule, symbol


def _place(item: Evidence) -> tuple[str, int, int]:
    return item.file, item.line, item.column


def _facts(before: Install, after: Install) -> tuple[FactChange, ...]:
    # The location is left out: it is the target's name, and differs between any two targets.
    names = ("distribution", "version", "python", "torch", "triton")
    changes = [FactChange(name, getattr(before, name), getattr(after, name)) for name in names]
    editable = ("yes" if install.editable else "no" for install in (before, after))
    changes.append(FactChange("editable", *editable))
    return tuple(change for change in changes if change.before != change.after)


def _methods(report: Report) -> dict[str, tuple[str, ...]]:
    return {"speculative": report.methods.speculative, "rejection": report.methods.rejection}


def _lists(install: Install) -> dict[str, tuple[str, ...]]:
    return {
        "modified": install.modified,
        "missing": install.missing,
        "extra": install.extra,
        "plugins": tuple(f"{p.group}: {p.name} = {p.value}" for p in install.plugins),
        "others": tuple(f"{o.distribution} {o.version or '?'}" for o in install.others),
    }


def _changes(
    before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]
) -> tuple[SetChange, ...]:
    changes = [_change(name, before[name], after[name]) for name in before]
    return tuple(change for change in changes if change.lost or change.gained)


def _change(name: str, before: tuple[str, ...], after: tuple[str, ...]) -> SetChange:
    return SetChange(
        name,
        lost=tuple(value for value in before if value not in after),
        gained=tuple(value for value in after if value not in before),
    )
