"""The study of one target: every file read once, every engine path examined, every stage judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from .beside import started
from .engines import Engine, default_path, find_engines, legacy_refusal
from .examine import Examiner, Hit, supports
from .install.check import Differences, RecordCheck
from .libraries import compiled_verifiers
from .masks import passed_masks
from .methods import read_methods
from .plugins.attach import attach
from .plugins.notes import plugin_notes, runner_notes
from .plugins.platforms import assign_runners, built_in
from .program.program import Program
from .program.receivers import Receivers
from .program.replacements import replacements
from .progress import Say
from .result import Coverage, EnginePath, PathResult, Report, Stage, StageVerdict, Unreadable
from .rules import all_rules
from .scan import Scan, scan
from .substitutes import rebound_kernels
from .targets.siblings import missing_modules
from .targets.source import Target
from .verdict import Judge, total

PACKAGE = "vllm"


@dataclass(frozen=True, slots=True)
class _Examined:
    """What the examination of one engine path found, and what it had to read for that."""

    hits: list[Hit]
    parsed: frozenset[str]
    failures: dict[str, str]


def study(target: Target, progress: Say) -> tuple[Report, RecordCheck]:
    """Read, examine and judge; the record check is handed back with the digests it took."""
    return _Study(target, progress).run()


class _Study:
    """One target's study; `run` does everything, in the order that keeps two cores busy."""

    def __init__(self, target: Target, progress: Say) -> None:
        self._target = target
        self._progress = progress
        self._said: tuple[str, ...] = ()
        source = target.source
        self._program = Program(source.files(), source.read, PACKAGE)
        self._receivers = Receivers(self._program)
        edited = sorted({path for found in target.siblings for path in found.importers})
        missing = frozenset(found.name for found in target.siblings if not found.files)
        self._examiner = Examiner(self._program, self._receivers, tuple(edited), missing)

    def run(self) -> tuple[Report, RecordCheck]:
        source = self._target.source
        self._progress("following the engine's calls")
        attached = attach(self._program, self._receivers, self._target.plugins, PACKAGE)
        self._examiner.attached = attached
        platforms = built_in(self._program, self._receivers, PACKAGE)
        engines = list(find_engines(self._program, self._receivers, PACKAGE))
        engines = list(assign_runners(self._program, engines, platforms.runners, attached.runners))
        self._said = tuple(runner_notes(engines, platforms.runners))
        self._replace(engines)
        default = default_path(self._program, PACKAGE, [engine.path for engine in engines])
        if attached.unread:
            default = dict.fromkeys(default)
        with ExitStack() as stack:
            # All paths but the last are examined beside this process, before it has threads.
            works: list[Callable[[], _Examined]] = [
                partial(self._examine, engine) for engine in engines
            ]
            if source.independent_reads:
                works[:-1] = [stack.enter_context(started(work)) for work in works[:-1]]
            self._progress("reading files")
            check = RecordCheck(source, self._target.record)
            elsewhere = self._target.seen
            seen = scan(source, check) if elsewhere is None else elsewhere.scan
            self._progress("examining the verifiers")
            found = [work() for work in reversed(works)][::-1]
        judge = Judge()
        paths = self._judge(judge, engines, default, found, seen)
        return self._report(judge, paths, found, seen, check), check

    def _replace(self, engines: Iterable[Engine]) -> None:
        """Know what runs in place of methods of the objects that the engines hold."""
        for engine in engines:
            for method, wrap in replacements(self._program, self._receivers, engine.classes[0]):
                self._receivers.wrappers.put(method, wrap)

    def _examine(self, engine: Engine) -> _Examined:
        hits = self._examiner.engine(engine)
        parsed = frozenset(module.path for module in self._program.loaded)
        return _Examined(hits, parsed, {**self._program.failures, **self._examiner.failures})

    def _judge(
        self,
        judge: Judge,
        engines: list[Engine],
        default: dict[EnginePath, bool | None],
        found: list[_Examined],
        seen: Scan,
    ) -> tuple[PathResult, ...]:
        every = [examined.hits for examined in found]
        masks = self._masks(seen) if any(_has_trees(hits) for hits in every) else []
        return tuple(
            judge.path(engine.path, default[engine.path], hits, masks)
            for engine, hits in zip(engines, every, strict=True)
        )

    def _masks(self, seen: Scan) -> list[Hit]:
        names = [path.removesuffix(".py").replace("/", ".") for path in seen.masks]
        modules = [module for name in names if (module := self._program.module(name)) is not None]
        return list(passed_masks(self._examiner, modules))

    def _report(
        self,
        judge: Judge,
        paths: tuple[PathResult, ...],
        found: list[_Examined],
        seen: Scan,
        check: RecordCheck,
    ) -> Report:
        target, source = self._target, self._target.source
        verdict, summary = total(paths)
        self._progress("comparing with the record of the install")
        methods = read_methods(self._program, PACKAGE)
        elsewhere = target.seen
        differences = check.finish() if elsewhere is None else elsewhere.differences
        hits = [hit for examined in found for hit in examined.hits]
        libraries = compiled_verifiers(source) if elsewhere is None else elsewhere.libraries
        return Report(
            target=target.name,
            tool_version=_version(),
            install=differences.onto(target.install),
            verdict=verdict,
            summary=summary,
            paths=paths,
            evidence=tuple(judge.evidence),
            methods=methods,
            coverage=self._coverage(found, seen),
            notes=(
                *target.notes,
                *missing_modules(source, self._edited(found, differences)),
                *self._refused(),
                *self._said,
                *plugin_notes(self._examiner, PACKAGE, hits),
                *_conditions(hits),
                *rebound_kernels(source, judge.evidence),
                *libraries,
            ),
        )

    def _edited(self, found: list[_Examined], differences: Differences) -> set[str]:
        """The files on engine paths that somebody edited; all of them where nothing tells."""
        parsed = {module.path for module in self._program.loaded}
        parsed = {path for path in parsed.union(*(one.parsed for one in found)) if _is_own(path)}
        changed = {*differences.modified, *differences.extra}
        return parsed & changed if differences.compared else parsed

    def _refused(self) -> Iterator[str]:
        place = legacy_refusal(self._program, PACKAGE)
        if place is not None:
            yield f"{place} refuses drafts on the V0 engine, which therefore verifies none"

    def _coverage(self, found: list[_Examined], seen: Scan) -> Coverage:
        failures = {**self._program.failures, **self._examiner.failures}
        parsed = {module.path for module in self._program.loaded}
        for examined in found:
            failures |= examined.failures
            parsed |= examined.parsed
        known = {item.file for item in seen.unreadable}
        broken = [Unreadable(file, failures[file]) for file in sorted(failures.keys() - known)]
        return Coverage(
            files=seen.files,
            bytes=seen.bytes,
            parsed=len(parsed),
            rules=tuple(rule.name for rule in all_rules()),
            unreadable=(*seen.unreadable, *broken),
        )


def _is_own(path: str) -> bool:
    return path.startswith(f"{PACKAGE}/")


def _has_trees(hits: list[Hit]) -> bool:
    return any(
        supports(hits, stage, StageVerdict.TREE) for stage in (Stage.DRAFTING, Stage.VERIFICATION)
    )


def _conditions(hits: Iterable[Hit]) -> tuple[str, ...]:
    """When the code that verifies trees leaves it to other code, each condition once."""
    trees = supports(list(hits), Stage.VERIFICATION, StageVerdict.TREE)
    return tuple(dict.fromkeys(hit.condition for hit in trees if hit.condition))


def _version() -> str:
    from .. import __version__

    return __version__
