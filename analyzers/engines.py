"""The engine paths of an install: where a step of each begins, and which one is the default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .program.module import Module
from .program.program import ClassRef, FunctionRef, Program
from .program.receivers import Receivers
from .result import EnginePath

# The methods in which a step runs the model, and in which it turns logits into tokens.
FORWARD, SAMPLE = "execute_model", "sample_tokens"
# The switch between the two V1 runners, and between the engines before them.
V2_SWITCH, V1_SWITCH = "VLLM_USE_V2_MODEL_RUNNER", "VLLM_USE_V1"
V2_PROPERTY = "use_v2_model_runner"


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine path: the classes that run its steps, and where following its calls starts.

    `runners` are what platforms of the package start in the place of its own class, `brought` what
    platforms of plug-ins do, and of the package's own those that sample in a way of their own.
    """

    path: EnginePath
    classes: tuple[ClassRef, ...]
    sampling: tuple[tuple[FunctionRef, ClassRef | None], ...]
    forward: tuple[tuple[FunctionRef, ClassRef | None], ...]
    runners: tuple[ClassRef, ...] = ()
    brought: tuple[ClassRef, ...] = ()

    def with_runners(self, program: Program, runners: Iterable[ClassRef]) -> Engine:
        """The same engine, in which some of its runners run as well."""
        known = {cls.key for cls in self.classes}
        new = [cls for cls in runners if cls.key not in known]
        owners = {one.key: one for cls in new for one in program.ancestry(cls)}
        classes = [*self.classes, *(one for key, one in owners.items() if key not in known)]
        sampling = [*self.sampling, *(entry for cls in new for entry in _sampling(program, cls))]
        return replace(self, classes=tuple(classes), sampling=tuple(sampling), brought=tuple(new))


def find_engines(program: Program, receivers: Receivers, package: str) -> Iterator[Engine]:
    """The engine paths that the code has and that take drafts, oldest first."""
    legacy = list(_legacy_workers(program, receivers, package))
    if legacy and legacy_refusal(program, package) is None:
        yield _engine(program, EnginePath.V0, [cls for cls, _ in legacy], [f for _, f in legacy])
    for path, folder, stem in (
        (EnginePath.V1, f"{package}.v1.worker", "gpu_model_runner"),
        (EnginePath.V2, f"{package}.v1.worker.gpu", "model_runner"),
    ):
        runner = _runner(program, folder, stem)
        if runner is not None:
            yield _engine(program, path, [runner], [])


def _engine(
    program: Program,
    path: EnginePath,
    classes: list[ClassRef],
    factories: Iterable[FunctionRef | None],
) -> Engine:
    sampling: list[tuple[FunctionRef, ClassRef | None]] = []
    forward: list[tuple[FunctionRef, ClassRef | None]] = []
    for cls in classes:
        run = program.method(cls, FORWARD)
        sampling += _sampling(program, cls)
        forward += [(run, cls)] if run else []
    sampling += [(factory, None) for factory in factories if factory is not None]
    owners = [ancestor for cls in classes for ancestor in program.ancestry(cls)]
    return Engine(path, tuple(owners), tuple(sampling), tuple(forward))


def _sampling(program: Program, cls: ClassRef) -> list[tuple[FunctionRef, ClassRef | None]]:
    method = program.method(cls, SAMPLE) or program.method(cls, FORWARD)
    return [(method, cls)] if method else []


def _runner(program: Program, folder: str, stem: str) -> ClassRef | None:
    """The class that runs a step, in the known module or else in one beside it."""
    known = program.module(f"{folder}.{stem}")
    beside = program.siblings(folder) if known is None else iter(())
    for module in [known, *beside]:
        if module is not None:
            found = _stepping_class(program, module)
            if found is not None:
                return found
    return None


def _stepping_class(program: Program, module: Module) -> ClassRef | None:
    best: ClassRef | None = None
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            cls = ClassRef(module, node)
            if program.method(cls, FORWARD) is not None and (
                best is None or len(node.body) > len(best.node.body)
            ):
                best = cls
    return best


def _legacy_workers(
    program: Program, receivers: Receivers, package: str
) -> Iterator[tuple[ClassRef, FunctionRef | None]]:
    """The workers of the engine before V1, which platforms name in strings."""
    seen: set[tuple[str, str]] = set()
    for _, data in program.sources(f"{package}.platforms"):
        for name in _dotted_strings(data, package):
            found = program.dotted(name)
            factory = found if isinstance(found, FunctionRef) else None
            classes = [found] if isinstance(found, ClassRef) else []
            if factory is not None:
                classes = list(receivers.returned(factory))
            for cls in classes:
                if cls.key not in seen and program.method(cls, FORWARD) is not None:
                    seen.add(cls.key)
                    yield cls, factory


def legacy_refusal(program: Program, package: str) -> str | None:
    """Where a platform refuses drafts unless the V1 engine runs: file and line, as one text.

    The last releases with a V0 engine raise when speculation is configured and V1 is switched off;
    that engine then verifies nothing.
    """
    for module in program.siblings(f"{package}.platforms", V1_SWITCH.encode()):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.If):
                for raised in _raised_without_v1(node):
                    return f"{module.path}:{raised.lineno}"
    return None


def _raised_without_v1(choice: ast.If) -> Iterator[ast.Raise]:
    """`if drafts: if not V1: raise …; worker = <the V1 worker>`."""
    for place, statement in enumerate(choice.body):
        if isinstance(statement, ast.If) and _is_switched_off(statement.test):
            raises = [inner for inner in statement.body if isinstance(inner, ast.Raise)]
            goes_on = any(isinstance(later, ast.Assign) for later in choice.body[place + 1 :])
            yield from raises if goes_on else ()


def _is_switched_off(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and isinstance(test.operand, ast.Attribute)
        and test.operand.attr == V1_SWITCH
    )


def _dotted_strings(data: bytes, package: str) -> Iterator[str]:
    """Quoted dotted names outside the V1 engine, in source order and each once."""
    name = re.escape(package).encode() + rb"\.(?!v1\.|platforms\.)[\w.]+"
    named = re.compile(rb"[\"'](" + name + rb")[\"']")
    yield from dict.fromkeys(found.decode("ascii", "ignore") for found in named.findall(data))


def default_path(
    program: Program, package: str, paths: Iterable[EnginePath]
) -> dict[EnginePath, bool | None]:
    """Which path a plain start takes, read from the switches in the code.

    None means that the code decides by the model: then no path is the default for all.
    """
    present = set(paths)
    if len(present) == 1:
        return dict.fromkeys(present, True)
    chosen: EnginePath | None
    if EnginePath.V2 in present:
        v2 = _v2_is_default(program, package)
        chosen = None if v2 is None else (EnginePath.V2 if v2 else EnginePath.V1)
    else:
        chosen = EnginePath.V1 if _switch(program, package, V1_SWITCH) else EnginePath.V0
    return {path: None if chosen is None else path is chosen for path in present}


def _v2_is_default(program: Program, package: str) -> bool | None:
    if (forced := _switch(program, package, V2_SWITCH)) is not None:
        return forced
    for name in (f"{package}.config.vllm", f"{package}.config", f"{package}.config.__init__"):
        module = program.module(name)
        for node in ast.walk(module.tree) if module else ():
            if isinstance(node, ast.FunctionDef) and node.name == V2_PROPERTY:
                return _decides(node)
    return None


def _decides(function: ast.FunctionDef) -> bool | None:
    """What the property answers when nothing is set and nothing is unsupported.

    `if not <a question about the model>: return False` admits listed models only, so that the
    answer depends on the model; `if <unsupported>: return False` excludes exceptions.
    """
    for node in function.body:
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.UnaryOp)
            and isinstance(node.test.op, ast.Not)
            and isinstance(node.test.operand, ast.Call)
            and any(_returns(statement, False) for statement in node.body)
        ):
            return None
    last = function.body[-1]
    if _returns(last, True):
        return True
    return False if _returns(last, False) else None


def _returns(statement: ast.stmt, value: bool) -> bool:
    return (
        isinstance(statement, ast.Return)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is value
    )


def _switch(program: Program, package: str, name: str) -> bool | None:
    """The default of an environment switch; None when unset leaves the choice to other code."""
    module = program.module(f"{package}.envs")
    for node in ast.walk(module.tree) if module else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"getenv", "get"}
            and len(node.args) == 2
            and isinstance(node.args[0], ast.Constant)
            and node.args[0].value == name
            and isinstance(node.args[1], ast.Constant)
        ):
            value = node.args[1].value
            return None if value is None else value not in {"0", "", "false", "False", 0}
    return None
