"""The runners that platforms start in place of the engine's own, found by the names they set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..engines import FORWARD, Engine
from ..program.module import Module
from ..program.program import ClassRef, Program
from ..program.receivers import Receivers
from ..program.values import Constant
from ..result import EnginePath
from .modules import dotted_strings, own_modules
from .start import Started


@dataclass(frozen=True, slots=True)
class Runner:
    """A class that runs steps on one platform, and the place that leads to it."""

    cls: ClassRef
    place: str


@dataclass(frozen=True, slots=True)
class Platform:
    """What was read of a platform: its runners, and the names that lead nowhere."""

    runners: tuple[Runner, ...] = ()
    unread: tuple[str, ...] = ()


def started_platform(program: Program, receivers: Receivers, started: Started) -> Platform:
    """What a platform plug-in starts: its entry point gives the name of the platform's class.

    Its worker is named in a string of its module, or of a module that this one leads to.
    """
    names = {one.value: None for one in started.returned if isinstance(one, Constant)}
    runners: list[Runner] = []
    unread: list[str] = []
    for name in names:
        if not isinstance(name, str):
            continue
        modules = _platform_modules(program, name)
        if not modules:
            unread.append(name)
            continue
        read = _named(program, receivers, _texts(modules))
        if not read.runners:
            read = _named(program, receivers, _texts(own_modules(program, modules)))
        runners += read.runners
        unread += read.unread
    return Platform(tuple(runners), tuple(unread))


def _platform_modules(program: Program, name: str) -> list[Module]:
    found = program.dotted(name)
    if isinstance(found, ClassRef):
        return [one.module for one in program.ancestry(found)]
    # The class may be chosen when its module is loaded.
    module = program.module(name.rpartition(".")[0])
    return [] if module is None else [module]


def built_in(program: Program, receivers: Receivers, package: str) -> Platform:
    """What the platforms of the package itself start for its present engine."""
    return _named(program, receivers, program.sources(f"{package}.platforms"), f"{package}.v1.")


def assign_runners(
    program: Program,
    engines: Iterable[Engine],
    built_in: Iterable[Runner],
    brought: Iterable[Runner],
) -> Iterator[Engine]:
    """The engines with the runners that platforms start in place of theirs.

    A runner belongs to the engine from whose class it derives; one that derives from none of them
    to the V1 runner, where a plug-in brings it, and to none where it is part of the package.
    """
    engines = list(engines)
    own = {engine.path: engine.classes[0] for engine in engines}
    homes: dict[tuple[str, str], EnginePath] = {}
    for runner in [*built_in, *brought]:
        line = {cls.key for cls in program.ancestry(runner.cls)}
        derived = [path for path, cls in own.items() if cls.key in line]
        homes[runner.cls.key] = derived[-1] if derived else EnginePath.V0
    for runner in brought:
        if homes[runner.cls.key] is EnginePath.V0:
            homes[runner.cls.key] = EnginePath.V1
    for engine in engines:
        here = [r.cls for r in built_in if homes[r.cls.key] is engine.path]
        theirs = [r.cls for r in brought if homes[r.cls.key] is engine.path]
        if engine.path is EnginePath.V0:
            here = []
        yield replace(engine, runners=tuple(here), brought=tuple(theirs))


def _texts(modules: Iterable[Module]) -> Iterator[tuple[str, bytes]]:
    return ((module.path, module.source) for module in modules)


def _named(
    program: Program,
    receivers: Receivers,
    files: Iterable[tuple[str, bytes]],
    below: str = "",
) -> Platform:
    """The runners of the workers that strings in some files name."""
    runners: dict[tuple[str, str], Runner] = {}
    unread: list[str] = []
    for path, source in files:
        for line, name in dotted_strings(source):
            if not name.startswith(below):
                continue
            worker = program.dotted(name)
            if not isinstance(worker, ClassRef):
                unread += [f"{name} ({path}:{line})"] if _is_gone(path, name) else []
            elif program.method(worker, FORWARD) is not None:
                for cls in _runners(program, receivers, worker):
                    runners.setdefault(cls.key, Runner(cls, f"{path}:{line}"))
    return Platform(tuple(runners.values()), tuple(unread))


def _is_gone(path: str, name: str) -> bool:
    """Whether a string names a worker of the platform's own package, which is then not there."""
    last = name.rpartition(".")[2]
    return name.startswith(f"{path.partition('/')[0]}.") and last[:1].isupper() and "orker" in last


def _runners(program: Program, receivers: Receivers, worker: ClassRef) -> Iterator[ClassRef]:
    """The classes of a worker's attributes that run steps themselves."""
    for name in receivers.attributes(worker):
        for cls in receivers.attribute(worker, name):
            if cls.key != worker.key and program.method(cls, FORWARD) is not None:
                yield cls
