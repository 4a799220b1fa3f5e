"""Plug-ins that change an engine at run time, examined by the same rules as the engine itself.

A plug-in is started by name and replaces what it likes, so no call path leads to it. Everything its
entry point reaches in its own package is followed from what it calls logits, and it counts for the
engine paths whose modules it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .examine import Examiner, Hit
from .program.dataflow import follow_named_logits
from .program.module import Module
from .program.program import ClassRef, FunctionRef, Program
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .result import EnginePath, Plugin
from .rules import Scope


def plugin_hits(
    examiner: Examiner, receivers: Receivers, plugins: tuple[Plugin, ...], package: str
) -> dict[EnginePath, list[Hit]]:
    """The findings in plug-ins, by the engine path that they change."""
    found: dict[EnginePath, list[Hit]] = {}
    for plugin in plugins:
        reach = _reach(examiner.program, receivers, plugin, package)
        own = [one for one in reach.functions if not _lies_in(one.function.module, package)]
        logits = follow_named_logits(reach, receivers)
        hits = [hit for one in own for hit in _examine(examiner, one, logits.tainted.get(one))]
        for path in _changed(receivers, own, package):
            found.setdefault(path, []).extend(hits)
    return found


def _reach(program: Program, receivers: Receivers, plugin: Plugin, package: str) -> Reach:
    """What the entry point reaches, with all methods of the classes that it hands to the engine."""
    reach = Reach(program, receivers)
    reach.run(_entries(program, plugin))
    handed: set[tuple[str, str]] = set()
    while True:
        own = [cls for cls in reach.classes if not _lies_in(cls.module, package)]
        new = [cls for cls in own if cls.key not in handed]
        if not new:
            return reach
        handed.update(cls.key for cls in new)
        reach.run(entry for cls in new for entry in _methods(cls))


def _examine(examiner: Examiner, reached: Reached, logits: set[str] | None) -> Iterator[Hit]:
    if logits:
        yield from examiner.apply(Scope.LOGITS, reached, logits)
    for kind in (Scope.DRAFTING, Scope.ATTENTION, Scope.COMMIT):
        yield from examiner.apply(kind, reached)


def _entries(program: Program, plugin: Plugin) -> Iterator[tuple[FunctionRef, ClassRef | None]]:
    """The entry function, and the methods of the plug-in's classes that strings name."""
    entry = program.dotted(plugin.value.partition("[")[0].strip())
    module: Module | None = None
    if isinstance(entry, FunctionRef):
        module = entry.module
        yield entry, None
    elif isinstance(entry, ClassRef):
        module = entry.module
        yield from _methods(entry)
    if module is None:
        return
    top = module.name.partition(".")[0]
    for cls in _named_classes(program, module, top):
        yield from _methods(cls)


def _named_classes(program: Program, module: Module, top: str) -> Iterator[ClassRef]:
    """Classes of the plug-in that a string names, as `worker_cls` settings do."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if node.value.startswith(f"{top}.") and " " not in node.value:
            found = program.dotted(node.value)
            if isinstance(found, ClassRef):
                yield found


def _methods(cls: ClassRef) -> Iterator[tuple[FunctionRef, ClassRef]]:
    for node in cls.node.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield FunctionRef(cls.module, node, cls), cls


def _lies_in(module: Module, package: str) -> bool:
    return module.name == package or module.name.startswith(f"{package}.")


def _changed(receivers: Receivers, own: list[Reached], package: str) -> set[EnginePath]:
    """The engine paths whose modules the plug-in imports; V1 if it imports none in particular."""
    names = {bound.module for one in own for bound in one.function.module.imports.values()}
    for reached in own:
        scope = receivers.scope(reached.function, reached.receiver)
        names |= {bound.module for bound in scope.imports.values()}
    used = {name for name in names if name.startswith(f"{package}.")}
    found = {path for name in used if (path := _path_of(name, package)) is not None}
    return found or {EnginePath.V1}


def _path_of(name: str, package: str) -> EnginePath | None:
    if name.startswith((f"{package}.v1.worker.gpu.",)) or name == f"{package}.v1.worker.gpu":
        return EnginePath.V2
    if name.startswith((f"{package}.v1.worker", f"{package}.v1.sample", f"{package}.v1.spec")):
        return EnginePath.V1
    if name.startswith((f"{package}.spec_decode", f"{package}.worker")):
        return EnginePath.V0
    return None
