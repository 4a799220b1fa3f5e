"""Which classes an expression can be an instance of, as far as assignments and annotations say."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from .module import FunctionNode, Import, Module, imported_names
from .program import ClassRef, FunctionRef, ModuleRef, Program, Resolved
from .survey import Survey, survey
from .wrappers import Wrappers

# A type is followed through at most so many assignments.
MAX_STEPS = 6
# What an annotation can look like; a quoted one is a constant.
_ANNOTATIONS = (ast.Name, ast.Attribute, ast.BinOp, ast.Subscript, ast.Constant)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A function seen from an instance: where its names are looked up."""

    function: FunctionRef
    receiver: ClassRef | None
    mentions: Survey
    imports: dict[str, Import]
    locals: dict[str, list[ast.expr]]
    annotations: dict[str, ast.expr]

    @property
    def module(self) -> Module:
        """The module whose globals the function sees."""
        return self.function.module


def open_scope(function: FunctionRef, receiver: ClassRef | None, mentions: Survey) -> Scope:
    """Collect a function's own imports, parameters and assignments."""
    scope = Scope(function, receiver, mentions, {}, defaultdict(list), {})
    arguments = function.node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        scope.locals[argument.arg] = []
        if argument.annotation is not None:
            scope.annotations[argument.arg] = argument.annotation
    for statement in mentions.imports:
        scope.imports.update(imported_names(statement, function.module.package))
    for store in mentions.stores:
        _bind(scope, store)
    return scope


def _bind(scope: Scope, store: ast.Assign | ast.AnnAssign) -> None:
    if isinstance(store, ast.Assign):
        for target in store.targets:
            if isinstance(target, ast.Name):
                scope.locals[target.id].append(store.value)
    elif isinstance(store.target, ast.Name):
        scope.annotations[store.target.id] = store.annotation
        scope.locals[store.target.id].extend([store.value] if store.value else [])


class Receivers:
    """Types of expressions; the attributes of each class are indexed once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.wrappers = Wrappers(program)
        self._attributes: dict[tuple[str, str], dict[str, list[tuple[FunctionRef, ast.expr]]]] = {}
        self._held: dict[tuple[tuple[str, str], str], tuple[ClassRef, ...]] = {}
        self._scopes: dict[tuple[int, tuple[str, str] | None], Scope] = {}
        self._modules: dict[str, Scope] = {}
        self._surveys: dict[int, Survey] = {}
        self._instances: dict[int, list[tuple[ast.Call, ClassRef]]] = {}

    def scope(self, function: FunctionRef, receiver: ClassRef | None) -> Scope:
        """The scope of a function as a method of `receiver`; each is opened once."""
        node = id(function.node)
        key = (node, receiver.key if receiver else None)
        if key not in self._scopes:
            self._scopes[key] = open_scope(function, receiver, self.survey(function))
        return self._scopes[key]

    def survey(self, function: FunctionRef) -> Survey:
        """What a function names and is made of; each is surveyed once."""
        key = id(function.node)
        if key not in self._surveys:
            self._surveys[key] = survey(function.node)
        return self._surveys[key]

    def resolve(self, scope: Scope, expression: ast.expr) -> Resolved | None:
        """What a name or dotted name means inside a function."""
        if isinstance(expression, ast.Name):
            name = expression.id
            if name in scope.function.bound:
                return scope.function.bound[name]
            if name in scope.imports:
                bound = scope.imports[name]
                return self.program.imported(bound.module, bound.attribute)
            if name in scope.locals:
                return None
            return self.program.resolve(scope.module, name)
        if isinstance(expression, ast.Attribute):
            base = self.resolve(scope, expression.value)
            return self.program.member(base, expression.attr) if base else None
        return None

    def modules(self, scope: Scope, expression: ast.expr, steps: int = 0) -> Iterator[ModuleRef]:
        """The modules of which an expression is one: `(fast if ready else slow).run(...)`."""
        if steps > MAX_STEPS:
            return
        if isinstance(expression, ast.IfExp | ast.BoolOp):
            for part in _alternatives(expression):
                yield from self.modules(scope, part, steps + 1)
        elif isinstance(expression, ast.Name) and scope.locals.get(expression.id):
            for value in scope.locals[expression.id]:
                yield from self.modules(scope, value, steps + 1)
        elif steps and isinstance(found := self.resolve(scope, expression), ModuleRef):
            yield found

    def returned(self, function: FunctionRef) -> Iterator[ClassRef]:
        """The classes of which a plain function may return an instance."""
        yield from self._returned(function, None, 0)

    def meanings(self, scope: Scope, name: ast.Name) -> list[FunctionRef | ClassRef]:
        """All functions and classes that a name may stand for inside a function."""
        if any(name.id in held for held in (scope.imports, scope.locals, scope.function.bound)):
            found = [self.resolve(scope, name)]
        else:
            found = list(self.program.meanings(scope.module, name.id))
        known = [one for one in found if isinstance(one, FunctionRef | ClassRef)]
        classes = [one for one in known if isinstance(one, ClassRef)]
        return [*known, *(other for cls in classes for other in self.program.beside_class(cls))]

    def types(self, scope: Scope, expression: ast.expr, steps: int = 0) -> Iterator[ClassRef]:
        """The classes of which `expression` may be an instance."""
        if steps > MAX_STEPS:
            return
        match expression:
            case ast.Name(id="self") if scope.receiver is not None:
                yield scope.receiver
            case ast.Name(id="cls") if scope.receiver is not None:
                yield scope.receiver
            case ast.Name(id=name) if name in scope.locals:
                yield from self._local(scope, name, steps)
            case ast.Name():
                yield from self._global(scope, expression, steps)
            case ast.Attribute(value=value, attr=attr):
                for owner in self.types(scope, value, steps + 1):
                    yield from self.attribute(owner, attr, steps + 1)
            case ast.Call(func=func):
                yield from self._called(scope, func, steps)
            case _:
                for part in _alternatives(expression):
                    yield from self.types(scope, part, steps + 1)

    def _local(self, scope: Scope, name: str, steps: int) -> Iterator[ClassRef]:
        if name in scope.annotations:
            yield from self._annotated(scope, scope.annotations[name])
        for value in scope.locals[name]:
            yield from self.types(scope, value, steps + 1)

    def _global(self, scope: Scope, name: ast.Name, steps: int) -> Iterator[ClassRef]:
        """What a module keeps under a name: an instance, a table of them, or the class itself."""
        found = self.resolve(scope, name)
        if isinstance(found, ClassRef):
            yield found
            return
        definition = scope.module.definitions.get(name.id)
        if isinstance(definition, ast.Assign | ast.AnnAssign):
            module = self._module_scope(scope.module)
            if isinstance(definition, ast.AnnAssign):
                yield from self._annotated(module, definition.annotation)
            if definition.value is not None:
                yield from self.types(module, definition.value, steps + 1)

    def _module_scope(self, module: Module) -> Scope:
        """A module's top level as a scope without names of its own."""
        if module.name not in self._modules:
            top = ast.parse("def top(): ...").body[0]
            if isinstance(top, ast.FunctionDef):
                self._modules[module.name] = self.scope(FunctionRef(module, top), None)
        return self._modules[module.name]

    def _called(self, scope: Scope, func: ast.expr, steps: int) -> Iterator[ClassRef]:
        found = self.resolve(scope, func)
        if isinstance(found, ClassRef):
            yield found
            yield from self.program.beside_class(found)
        elif isinstance(found, FunctionRef):
            base = self.resolve(scope, func.value) if isinstance(func, ast.Attribute) else None
            yield from self._returned(found, base if isinstance(base, ClassRef) else None, steps)
        elif not isinstance(func, ast.Attribute):
            # A class that was handed in or looked up, and is called.
            yield from self.types(scope, func, steps + 1)
        else:
            for owner in self.types(scope, func.value, steps + 1):
                method = self.program.method(owner, func.attr)
                if method is not None:
                    yield from self._returned(method, owner, steps)

    def _returned(
        self, function: FunctionRef, receiver: ClassRef | None, steps: int
    ) -> Iterator[ClassRef]:
        scope = self.scope(function, receiver)
        if function.node.returns is not None:
            yield from self._annotated(scope, function.node.returns)
        for node in scope.mentions.returns:
            if node.value is not None:
                yield from self.types(scope, node.value, steps + 2)

    def _annotated(self, scope: Scope, annotation: ast.expr) -> Iterator[ClassRef]:
        for node in ast.walk(annotation):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._quoted(scope, node.value)
            elif isinstance(node, ast.Name | ast.Attribute):
                found = self.resolve(scope, node)
                if isinstance(found, ClassRef):
                    yield found

    def _quoted(self, scope: Scope, text: str) -> Iterator[ClassRef]:
        try:
            parsed = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError):
            return
        if not isinstance(parsed.body, ast.Constant):
            yield from self._annotated(scope, parsed.body)

    def attributes(self, owner: ClassRef) -> list[str]:
        """The names of what an instance of a class holds, as far as its methods say."""
        return list(self._index(owner))

    def instances(self, scope: Scope) -> list[tuple[ast.Call, ClassRef]]:
        """The calls in a function that make an instance of a class of the code."""
        key = id(scope.function.node)
        if key not in self._instances:
            named = (call for call in scope.mentions.calls if not isinstance(call.func, ast.Call))
            found = ((call, self.resolve(scope, call.func)) for call in named)
            self._instances[key] = [(c, cls) for c, cls in found if isinstance(cls, ClassRef)]
        return self._instances[key]

    def fields(self, owner: ClassRef) -> list[str]:
        """The annotated attributes of a class and its bases, in the order of a dataclass."""
        return [
            statement.target.id
            for ancestor in reversed(self.program.ancestry(owner))
            for statement in ancestor.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]

    def attribute(self, owner: ClassRef, name: str, steps: int = 0) -> tuple[ClassRef, ...]:
        """The classes that `instance_of_owner.name` may hold, each once."""
        key = (owner.key, name)
        if key not in self._held:
            # Entered before the look-up, so that attributes assigned from each other end.
            self._held[key] = ()
            found = {cls.key: cls for cls in self._stored_types(owner, name, steps)}
            self._held[key] = tuple(found.values())
        return self._held[key]

    def _stored_types(self, owner: ClassRef, name: str, steps: int) -> Iterator[ClassRef]:
        for function, expression in self._index(owner).get(name, ()):
            scope = self.scope(function, owner)
            if isinstance(expression, _ANNOTATIONS):
                yield from self._annotated(scope, expression)
            yield from self.types(scope, expression, steps + 1)

    def _index(self, owner: ClassRef) -> dict[str, list[tuple[FunctionRef, ast.expr]]]:
        known = self._attributes.get(owner.key)
        if known is None:
            known = self._attributes[owner.key] = defaultdict(list)
            for ancestor in self.program.ancestry(owner):
                top = self._module_scope(ancestor.module).function
                for name, expression in _declared(ancestor.node):
                    known[name].append((top, expression))
            for function in _methods(self.program, owner):
                for name, expression in _stores(function.node):
                    known[name].append((function, expression))
        return known


def _alternatives(expression: ast.expr) -> list[ast.expr]:
    """The parts of which an expression is one, or an element of one."""
    match expression:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=values):
            return values
        case ast.Subscript(value=value) | ast.NamedExpr(value=value):
            return [value]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.Dict(values=elements):
            return elements
        case _:
            return []


def _declared(cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """The annotations and values of a class's own attributes, fields of dataclasses among them."""
    for statement in cls.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, statement.annotation
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value


def _methods(program: Program, owner: ClassRef) -> Iterator[FunctionRef]:
    for ancestor in program.ancestry(owner):
        for node in ancestor.node.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield FunctionRef(ancestor.module, node, ancestor)


def _stores(function: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    """Every value and annotation that a method gives to an attribute of `self`.

    Only statements are visited, not expressions: most methods of an engine store nothing.
    """
    if function.returns is not None and _is_property(function):
        yield function.name, function.returns
    stack: list[ast.stmt] = list(function.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            yield from _sides(statement)
            continue
        for part in ("body", "orelse", "finalbody"):
            stack.extend(getattr(statement, part, ()))
        for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            stack.extend(branch.body)


def _sides(node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, ast.expr]]:
    values: list[ast.expr] = []
    targets: list[ast.expr] = []
    if isinstance(node, ast.AnnAssign):
        targets, values = [node.target], [node.annotation, *([node.value] if node.value else [])]
    elif not isinstance(node.value, ast.Constant):
        values = [node.value]
        for target in node.targets:
            # `self.a, self.b = f()`: either may be anything that the call returns.
            targets.extend(target.elts if isinstance(target, ast.Tuple) else [target])
    for target in targets:
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == "self"
        ):
            for value in values:
                yield target.attr, value


def _is_property(function: FunctionNode) -> bool:
    return any(
        isinstance(mark, ast.Name) and mark.id in {"property", "cached_property"}
        for mark in function.decorator_list
    )
