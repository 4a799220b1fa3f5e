"""What a report says of plug-ins beside the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..engines import Engine
from ..examine import Examiner, Hit, supports
from ..program.dataflow import follow_named_logits
from ..program.program import FunctionRef
from ..program.reach import Reach
from ..program.taint import PRODUCER
from ..result import Plugin, Stage, StageVerdict
from ..rules import Scope
from .platforms import Runner
from .start import Started


def plugin_notes(examiner: Examiner, package: str, hits: Iterable[Hit]) -> Iterator[str]:
    """Sentences about platforms that were not read, and walks that no engine path reaches."""
    yield from examiner.attached.unread
    cited = {hit.file for hit in hits}
    for plugin, started in examiner.attached.started.items():
        files = {module.path for module in started.modules}
        if not files & cited:
            walk = next(_walks(examiner, started), None)
            if walk is not None:
                yield _unreached(plugin, walk, examiner.attached.missing[plugin])


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


def _walks(examiner: Examiner, started: Started) -> Iterator[Hit]:
    """Tree verifiers in the functions of a plug-in's own modules, for what they call logits."""
    reach = Reach(examiner.program, examiner.receivers)
    functions = []
    for module in started.modules:
        for name in module.definitions:
            found = examiner.program.resolve(module, name)
            if isinstance(found, FunctionRef) and found.module is module:
                functions.append((found, None))
    reach.run(functions)
    logits = follow_named_logits(reach, examiner.receivers)
    own = {module.path for module in started.modules}
    for reached, names in logits.tainted.items():
        if reached.function.module.path in own:
            hits = examiner.apply(Scope.LOGITS, reached, names, StageVerdict.TREE)
            yield from supports(hits, Stage.VERIFICATION, StageVerdict.TREE)
