"""The inspection of one target: locate, read, examine, judge."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .engines import default_path, find_engines
from .examine import Examiner, Hit, supports
from .install.check import RecordCheck
from .masks import passed_masks
from .methods import read_methods
from .plugins import plugin_hits
from .program.program import Program
from .program.receivers import Receivers
from .result import (
    Coverage,
    PathResult,
    Report,
    Stage,
    StageVerdict,
    Unreadable,
)
from .rules import all_rules
from .scan import Scan, scan
from .substitutes import compiled_verifiers, rebound_kernels
from .targets.resolve import open_target
from .targets.source import Target
from .verdict import Judge, total

PACKAGE = "vllm"


def _silent(_: str) -> None:
    """Progress that nobody wants to see."""


def inspect_target(
    target: str | None,
    *,
    python: Path | None = None,
    cache: bool = True,
    progress: Callable[[str], None] = _silent,
) -> Report:
    """Prove from the installed files what a vLLM verifies.

    Args:
        target: what the user named; see `open_target`.
        python: the interpreter whose environment is meant when there is no target.
        cache: use and keep the result of an earlier inspection of the same bytes.
        progress: told what is being done, for a person who waits.

    Raises:
        DdtreeError: the target cannot be found or read.
    """
    with open_target(target, python=python, progress=progress) as opened, _no_collection():
        return _inspect(opened, progress)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Parsing makes millions of nodes and no garbage; collecting meanwhile doubles its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _inspect(target: Target, progress: Callable[[str], None]) -> Report:
    source = target.source
    progress("reading files")
    check = RecordCheck(source, target.record)
    seen = scan(source, check)
    progress("following the engine's calls")
    program = Program(source.files(), source.read, PACKAGE)
    receivers = Receivers(program)
    examiner = Examiner(program, receivers)
    judge = Judge()
    paths = _judge_paths(target, examiner, receivers, judge, seen)
    verdict, summary = total(paths)
    progress("comparing with the record of the install")
    differences = check.finish()
    notes = [*target.notes, *rebound_kernels(source, judge.evidence), *compiled_verifiers(source)]
    return Report(
        target=target.name,
        tool_version=_version(),
        install=differences.onto(target.install),
        verdict=verdict,
        summary=summary,
        paths=paths,
        evidence=tuple(judge.evidence),
        methods=read_methods(program, PACKAGE),
        coverage=_coverage(program, examiner, seen),
        notes=tuple(notes),
    )


def _judge_paths(
    target: Target, examiner: Examiner, receivers: Receivers, judge: Judge, seen: Scan
) -> tuple[PathResult, ...]:
    program = examiner.program
    engines = list(find_engines(program, receivers, PACKAGE))
    default = default_path(program, PACKAGE, [engine.path for engine in engines])
    beside = plugin_hits(examiner, receivers, target.plugins, PACKAGE)
    results = []
    masks: list[Hit] | None = None
    for engine in engines:
        hits = [*examiner.engine(engine), *beside.get(engine.path, [])]
        if masks is None and _has_trees(hits):
            masks = _masks(examiner, seen)
        results.append(judge.path(engine.path, default[engine.path], hits, masks or []))
    return tuple(results)


def _has_trees(hits: list[Hit]) -> bool:
    return any(
        supports(hits, stage, StageVerdict.TREE) for stage in (Stage.DRAFTING, Stage.VERIFICATION)
    )


def _masks(examiner: Examiner, seen: Scan) -> list[Hit]:
    names = [path.removesuffix(".py").replace("/", ".") for path in seen.masks]
    modules = [module for name in names if (module := examiner.program.module(name)) is not None]
    return list(passed_masks(examiner, modules))


def _coverage(program: Program, examiner: Examiner, seen: Scan) -> Coverage:
    failures = {**program.failures, **examiner.failures}
    known = {item.file for item in seen.unreadable}
    broken = [Unreadable(file, why) for file, why in failures.items() if file not in known]
    return Coverage(
        files=seen.files,
        bytes=seen.bytes,
        parsed=sum(1 for _ in program.loaded),
        rules=tuple(rule.name for rule in all_rules()),
        unreadable=(*seen.unreadable, *broken),
    )


def _version() -> str:
    from .. import __version__

    return __version__


