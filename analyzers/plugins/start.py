"""What a plug-in does when vLLM loads it: its entry point, run over what is known of values.

Everything that it stores on classes and modules is kept, whether it assigns, calls `setattr` or
hands names and functions to a helper of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..program.evaluate import Evaluator
from ..program.module import Module, imported_names
from ..program.program import ClassRef, FunctionRef, ModuleRef, Program
from ..program.values import Closure, Constant, Row, Stored, Table, Value, Words, texts

# Methods of what Python finds modules by.
_TAKES_OVER = re.compile(r"(?:^|\.)(?:meta_path|path_hooks)\.(?:insert|append|extend)$")
# What is told the name of a module and leaves it as it is.
_HARMLESS = frozenset(
    {"getLogger", "init_logger", "find_spec", "startswith", "endswith", "print", "register_model"}
    | {"debug", "info", "info_once", "warning", "warning_once", "error", "exception", "hasattr"}
)
# A plug-in that does more than this when it starts is run no further.
MAX_STEPS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A value that a plug-in stores on something that it did not make, and where it does so."""

    module: Module
    line: int
    stored: Stored

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.module.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Started:
    """What became of a plug-in's start.

    `returned` is what its entry point gives (a platform's gives the name of a class); `modules` are
    those of its own that were loaded; `finished` is False if the start is too long to follow.
    """

    bindings: tuple[Binding, ...]
    returned: tuple[Value, ...]
    modules: tuple[Module, ...]
    finished: bool


def start(program: Program, entry: str) -> Started:
    """Load the module of an entry point (`package.module:function`) and call what it names."""
    module = entry.partition(":")[0].strip()
    # A plug-in that the package itself brings owns the folder that it lies in.
    own = module.rpartition(".")[0] if program.is_inside(module) else module.partition(".")[0]
    return _Start(program, own).run(entry)


class _Start(Evaluator):
    """Follows one start; modules are run once, when they are first imported."""

    def __init__(self, program: Program, own: str) -> None:
        super().__init__(program)
        self._source = program
        self._own = own
        self._loaded: dict[str, Module] = {}
        self._bindings: dict[tuple[str, int, str, int], Binding] = {}
        self._steps = 0

    def run(self, entry: str) -> Started:
        """Everything from the import of the module to the end of the function."""
        name = entry.partition("[")[0].strip()
        self._load(name.partition(":")[0])
        found = self._source.dotted(name) if ":" in name else None
        value: Value | None = Closure(found) if isinstance(found, FunctionRef) else found
        returned = self.call(value, [], {}) if value is not None else []
        modules = tuple(self._loaded.values())
        bindings = tuple(self._bindings.values())
        return Started(bindings, tuple(returned), modules, self._steps < MAX_STEPS)

    def call(self, value: Value, arguments: Sequence[Value | None], words: Words) -> list[Value]:
        """What a call may return; only the plug-in's own code is run."""
        if isinstance(value, Closure) and not self._is_own(value.function.module.name):
            return []
        if isinstance(value, ClassRef) and not self._is_own(value.module.name):
            return []
        return super().call(value, arguments, words)

    def _is_own(self, module: str) -> bool:
        # What is at hand beside the engine's package came with a plug-in.
        own = f"{module}.".startswith(f"{self._own}.")
        return own or not self._source.is_inside(module)

    def _load(self, name: str) -> None:
        """Run a module of the plug-in's own, and the packages above it, as an import does."""
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            dotted = ".".join(parts[:end])
            if not self._is_own(dotted) or dotted in self._loaded:
                continue
            module = self._source.module(dotted)
            if module is not None:
                self._loaded[dotted] = module
                list(self._statements(module, _run_at_import(module), {}))

    def _statements(
        self, module: Module, body: Iterable[ast.stmt], names: dict[str, Value]
    ) -> Iterator[Value | None]:
        for statement in body:
            self._steps += 1
            if self._steps > MAX_STEPS:
                return
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._load(alias.name)
            elif isinstance(statement, ast.ImportFrom):
                for _, bound in imported_names(statement, module.package):
                    self._load(f"{bound.module}.{bound.attribute}")
            elif isinstance(statement, ast.ClassDef):
                self._mark(module, statement, names)
            found = list(super()._statements(module, [statement], names))
            yield from found
            if None in found:
                return

    def _mark(self, module: Module, cls: ast.ClassDef, names: dict[str, Value]) -> None:
        """Make a class known by its name, and call its decorators with it."""
        names[cls.name] = ClassRef(module, cls)
        for mark in cls.decorator_list:
            for decorator in self.expression(module, mark, names):
                self.call(decorator, [ClassRef(module, cls)], {})

    def effect(self, module: Module, call: ast.Call, names: dict[str, Value]) -> None:
        """`setattr`, and calls of functions that may store something."""
        if ast.unparse(call.func) != "setattr" or len(call.args) != 3:
            self.expression(module, call, names)
            return
        holders, keys, values = [self.expression(module, one, names) for one in call.args]
        holder, value = holders[0] if holders else None, values[0] if values else None
        known = [one.value for one in keys if isinstance(one, Constant)]
        for name in known or [""]:
            if isinstance(name, str):
                self.stored(module, call, Stored(holder, name, value))

    def rounds(self, module: Module, loop: ast.For, names: dict[str, Value]) -> Iterator[None]:
        """One round for every element that is written out."""
        known = list(self._elements(module, loop.iter, names))
        for home, element, around in known:
            self._bind(loop.target, home, element, around, names)
            yield
        if not known:
            yield

    def _elements(
        self, module: Module, source: ast.expr, names: Mapping[str, Value]
    ) -> Iterator[tuple[Module, ast.expr, Mapping[str, Value]]]:
        pairs = False
        match source:
            case ast.Call(func=ast.Attribute(value=table, attr="items")):
                source, pairs = table, True
        for value in self.expression(module, source, names):
            if isinstance(value, Row):
                yield from ((value.module, one, value.names) for one in value.elements)
            elif isinstance(value, Table):
                for key, held in zip(value.node.keys, value.node.values, strict=True):
                    if key is not None:
                        pair = ast.Tuple([key, held], ast.Load())
                        yield value.module, pair if pairs else key, value.names

    def _bind(
        self,
        target: ast.expr,
        module: Module,
        element: ast.expr,
        around: Mapping[str, Value],
        names: dict[str, Value],
    ) -> None:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        if isinstance(element, ast.Tuple | ast.List) and len(parts) == len(element.elts):
            for part, inner in zip(parts, element.elts, strict=True):
                self._bind(part, module, inner, around, names)
        elif isinstance(target, ast.Name):
            names.pop(target.id, None)
            found = self.expression(module, element, around)
            if found:
                names[target.id] = found[0]

    def stored(self, module: Module, at: ast.expr, stored: Stored) -> None:
        """Keep what is stored on classes and modules, each place once per holder."""
        key = (module.name, at.lineno, stored.name, id(stored.holder and _node_of(stored.holder)))
        self._bindings.setdefault(key, Binding(module, at.lineno, stored))

    def _attribute(self, value: Value, name: str) -> list[Value]:
        if name == "__name__" and isinstance(value, Closure):
            return [Constant(value.function.node.name)]
        return super()._attribute(value, name)

    def _made(
        self, module: Module, node: ast.Call, names: Mapping[str, Value]
    ) -> list[Value] | None:
        text = ast.unparse(node.func)
        if text == "getattr" and len(node.args) > 1:
            return list(self._picked(module, node, names))
        if _TAKES_OVER.search(text):
            self.stored(module, node, Stored(ModuleRef("builtins"), "__import__", None))
        if text.endswith("import_module") and node.args:
            found = texts(self.expression(module, node.args[0], names))
            for name in found:
                self._load(name)
            return [ModuleRef(name) for name in found]
        return super()._made(module, node, names)

    def _picked(
        self, module: Module, node: ast.Call, names: Mapping[str, Value]
    ) -> Iterator[Value]:
        """What `getattr` gives for a name that is known."""
        keys = texts(self.expression(module, node.args[1], names))
        for holder in self.expression(module, node.args[0], names):
            for key in keys:
                yield from self._attribute(holder, key)

    def unfollowed(self, module: Module, call: ast.Call, given: Iterable[Value | None]) -> None:
        """What is told the name of a module of the package may replace what is in it.

        `mock.patch("package.module.function", mine)`, `@when_imported("package.module")`.
        """
        if ast.unparse(call.func).rpartition(".")[2] not in _HARMLESS:
            self._open(module, call, texts(given))

    def put(self, module: Module, target: ast.Subscript, names: Mapping[str, Value]) -> None:
        """Modules may be replaced as a whole: `sys.modules["package.module"] = mine`."""
        if ast.unparse(target.value) == "sys.modules":
            self._open(module, target, texts(self.expression(module, target.slice, names)))

    def _open(self, module: Module, at: ast.expr, texts: Iterable[str]) -> None:
        """Leave open what is in the modules of the package that some texts name, or lead into."""
        for text in filter(self._source.is_inside, texts):
            parts = text.split(".")
            ways = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
            name = next((one for one in ways if self._source.path_of(one) is not None), None)
            if name is not None:
                self.stored(module, at, Stored(ModuleRef(name), "", None))

    def _part(self, module: Module, node: ast.expr, names: Mapping[str, Value]) -> Iterator[Value]:
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
            yield from map(ModuleRef, texts(self.expression(module, node.slice, names)))
        else:
            yield from super()._part(module, node, names)


def _run_at_import(module: Module) -> list[ast.stmt]:
    """The statements of a module; what it defines without decorators is looked up by name."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        statement
        for statement in module.tree.body
        if not isinstance(statement, kinds) or statement.decorator_list
    ]


def _node_of(value: Value) -> object:
    if isinstance(value, ClassRef):
        return value.node
    return value.name if isinstance(value, ModuleRef) else value
