"""What a report says of plug-ins beside the verdicts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..engines import Engine
from ..examine import Examiner, Hit, functions_of, supports
from ..program.dataflow import follow_named_logits
from ..program.module import Import, Module, imported_names
from ..program.program import FunctionRef, Program
from ..program.reach import Reach
from ..program.taint import PRODUCER
from ..result import Plugin, Stage, StageVerdict
from ..rules import Scope
from .attach import lies_in
from .modules import own_modules
from .platforms import Runner


def plugin_notes(examiner: Examiner, package: str, hits: Iterable[Hit]) -> Iterator[str]:
    """Sentences about platforms that were not read, and walks that no engine path reaches."""
    yield from examiner.attached.unread
    cited = {hit.file for hit in hits}
    for plugin, started in examiner.attached.started.items():
        if lies_in(plugin.value, package) or {one.path for one in started.modules} & cited:
            continue
        modules = own_modules(examiner.program, started.modules)
        walk = next(_walks(examiner, modules), None)
        if walk is not None:
            missing = [*_lacking(examiner.program, modules, package)]
            missing += examiner.attached.missing[plugin]
            yield _unreached(plugin, walk, list(dict.fromkeys(missing)))


def runner_notes(engines: Iterable[Engine], runners: Iterable[Runner]) -> Iterator[str]:
    """Sentences about runners of the package's platforms that belong to no engine path."""
    known = {cls.key for engine in engines for cls in (*engine.classes, *engine.runners)}
    for runner in runners:
        # One without logits verifies nothing: an encoder's, say.
        if runner.cls.key not in known and PRODUCER.encode() in runner.cls.module.source:
            name = f"{runner.cls.module.name}.{runner.cls.node.name}"
            yield (
                f"{runner.place} starts {name}, which derives from no runner that was read: what "
                "it verifies on that platform is not part of the verdict"
            )


def _unreached(plugin: Plugin, walk: Hit, missing: list[str]) -> str:
    place = f"{walk.file}:{walk.finding.line}"
    said = (
        f"the plug-in {plugin.name} brings tree verification ({place}) that no engine path reaches"
    )
    if missing:
        names = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if missing[5:] else "")
        said += f"; it needs what this vLLM lacks: {names}"
    return said


def _lacking(program: Program, modules: Iterable[Module], package: str) -> Iterator[str]:
    """The names that some modules import from the package, anywhere, and that it does not have."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for _, bound in imported_names(node, module.package):
                    if lies_in(bound.module, package) and not _has(program, bound):
                        yield ".".join(filter(None, (bound.module, bound.attribute)))


def _has(program: Program, bound: Import) -> bool:
    """Whether there is such a module, and whether it at least mentions the attribute."""
    whole = f"{bound.module}.{bound.attribute}"
    if bound.attribute is None or program.path_of(whole) is not None:
        return bound.attribute is not None or program.path_of(bound.module) is not None
    origin = program.module(bound.module)
    return origin is not None and bound.attribute.encode() in origin.source


def _walks(examiner: Examiner, modules: Iterable[Module]) -> Iterator[Hit]:
    """Tree verifiers in the functions of some modules, for what they call logits."""
    reach = Reach(examiner.program, examiner.receivers)
    reach.run(
        (FunctionRef(module, node), None)
        for module in modules
        for node in functions_of(module.tree)
    )
    logits = follow_named_logits(reach, examiner.receivers)
    own = {module.path for module in modules}
    for reached, names in logits.tainted.items():
        if reached.function.module.path in own:
            hits = examiner.apply(Scope.LOGITS, reached, names, StageVerdict.TREE)
            yield from supports(hits, Stage.VERIFICATION, StageVerdict.TREE)
