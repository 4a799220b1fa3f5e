"""What a decorator makes of a function, as far as constants and definitions tell.

The statements of decorators and their factories are run over abstract values: functions with what
they enclose, constants, tables of the module. A choice that no constant decides takes both ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .module import Module, imported_names
from .program import ClassRef, FunctionRef, ModuleRef, Program
from .registered import registered
from .values import (
    Closure,
    Constant,
    Copying,
    Instance,
    Row,
    Stored,
    Table,
    Value,
    Words,
    as_function,
    compared,
    defaults,
    home_of,
    matched,
    matches_case,
    named_only,
    names_around,
    positional,
    texts,
)

# A decorator is a few calls deep; more is not a decorator's business.
MAX_CALLS = 12


MAX_VALUES = 8


class Evaluator:
    """Evaluates expressions and calls of the inspected code; an empty result is unknown."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._depth = 0

    def expression(self, module: Module, node: ast.expr, names: Mapping[str, Value]) -> list[Value]:
        """The values that an expression may have; `names` are those of the function around it."""
        match node:
            case ast.Constant(value=value):
                return [Constant(value)]
            case ast.Name(id=name):
                return [names[name]] if name in names else self._global(module, name)
            case ast.Lambda():
                return [Closure(FunctionRef(module, as_function(node)), names)]
            case ast.Dict():
                return [Table(module, node, names)]
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [Row(module, tuple(elements), names)]
            case ast.Call():
                return self._called(module, node, names)
        return list(self._part(module, node, names))

    def _part(self, module: Module, node: ast.expr, names: Mapping[str, Value]) -> Iterator[Value]:
        """The values of an expression that picks one of others, or a part of one."""
        match node:
            case ast.Attribute(value=base, attr=attr):
                for value in self.expression(module, base, names):
                    yield from self._attribute(value, attr)
            case ast.Subscript(value=base, slice=key):
                keys = self.expression(module, key, names)
                for table in self.expression(module, base, names):
                    yield from self._entry(table, keys)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = self.decide(module, test, names)
                if decided is not False:
                    yield from self.expression(module, body, names)
                if decided is not True:
                    yield from self.expression(module, orelse, names)
            case ast.BoolOp(values=values):
                for way in values:
                    yield from self.expression(module, way, names)
            case ast.NamedExpr(value=value):
                yield from self.expression(module, value, names)

    def call(self, value: Value, arguments: Sequence[Value | None], words: Words) -> list[Value]:
        """What calling a value may return; None stands for an argument that is not known."""
        if isinstance(value, Copying):
            return [one for one in arguments[:1] if one is not None]
        if self._depth >= MAX_CALLS:
            return []
        self._depth += 1
        try:
            if isinstance(value, Closure):
                return self._run(value, [*value.first, *arguments], words)
            if isinstance(value, ClassRef):
                return [self._construct(value, arguments, words)]
            if isinstance(value, Instance) and (method := self.method(value, "__call__")):
                return self._run(method, [*method.first, *arguments], words)
        finally:
            self._depth -= 1
        return []

    def enclosed(self, closure: Closure) -> dict[str, Value]:
        """The names that hold something known once the statements of a function have run."""
        names = names_around(closure)
        names.update(matched(positional(closure.function.node), closure.first))
        list(self._statements(closure.function.module, closure.function.node.body, names))
        return names

    def _run(
        self, closure: Closure, arguments: Sequence[Value | None], words: Words
    ) -> list[Value]:
        node, module = closure.function.node, closure.function.module
        names = names_around(closure)
        parameters = positional(node)
        for argument, default in defaults(node):
            if found := self.expression(module, default, {}):
                names[argument] = found[0]
        names.update(matched(parameters, arguments))
        names.update({name: value for name, value in words.items() if name in parameters})
        names.update({name: value for name, value in words.items() if name in named_only(node)})
        returned = list(self._statements(module, node.body, names))
        return [value for value in returned if value is not None][:MAX_VALUES]

    def _statements(
        self, module: Module, body: Iterable[ast.stmt], names: dict[str, Value]
    ) -> Iterator[Value | None]:
        """Run statements over `names`; the values that are returned, and None where the end is."""
        for statement in body:
            match statement:
                case ast.Return(value=value):
                    yield from self.expression(module, value, names) if value else ()
                    yield None
                    return
                case ast.Raise():
                    yield None
                    return
                case ast.FunctionDef():
                    self._define(module, statement, names)
                case ast.Import() | ast.ImportFrom():
                    self._import(module, statement, names)
                case ast.Assign(targets=targets, value=value):
                    self._assign(module, targets, value, names)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign(module, [target], value, names)
                case ast.Expr(value=ast.Call() as value):
                    self.effect(module, value, names)
                case _:
                    ended = False
                    for ways, certain in self._branches(module, statement, names):
                        found = list(self._statements(module, ways, names))
                        ended = ended or (certain and None in found)
                        yield from (value for value in found if value is not None)
                    if ended:
                        yield None
                        return

    def effect(self, module: Module, call: ast.Call, names: dict[str, Value]) -> None:
        """A call for its effect; a decorator's are of no interest."""

    def stored(self, module: Module, at: ast.expr, stored: Stored) -> None:
        """A value is stored on something that is no object made here."""

    def put(self, module: Module, target: ast.Subscript, names: Mapping[str, Value]) -> None:
        """A value is put into something by a key."""

    def unfollowed(self, module: Module, call: ast.Call, given: Iterable[Value | None]) -> None:
        """Something is called that nothing is known of."""

    def rounds(self, module: Module, loop: ast.For, names: dict[str, Value]) -> Iterator[None]:
        """The rounds of a loop; of a decorator's, one tells enough."""
        yield

    def _branches(
        self, module: Module, statement: ast.stmt, names: dict[str, Value]
    ) -> Iterator[tuple[list[ast.stmt], bool]]:
        """The bodies of a compound statement that may run, and whether one certainly does."""
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                decided = self.decide(module, test, names)
                if decided is not False:
                    yield body, decided is True
                if decided is not True:
                    yield orelse, decided is False
            case ast.Match(subject=subject, cases=cases):
                known = self.expression(module, subject, names)
                for case in cases:
                    decided = matches_case(case, known)
                    if decided is not False:
                        yield case.body, decided is True
                    if decided is True:
                        return
            case ast.With(body=body):
                yield body, True
            case ast.Try(body=body, handlers=handlers, orelse=orelse):
                yield [*body, *orelse], False
                for handler in handlers:
                    yield handler.body, False
            case ast.For(body=body):
                for _ in self.rounds(module, statement, names):
                    yield body, False
            case ast.While(body=body):
                yield body, False

    def _import(
        self, module: Module, statement: ast.Import | ast.ImportFrom, names: dict[str, Value]
    ) -> None:
        for name, bound in imported_names(statement, module.package):
            found = self._program.imported(bound.module, bound.attribute)
            if found is not None:
                names[name] = Closure(found) if isinstance(found, FunctionRef) else found

    def _define(self, module: Module, node: ast.FunctionDef, names: dict[str, Value]) -> None:
        value: Value = Closure(FunctionRef(module, node), names)
        for mark in reversed(node.decorator_list):
            for decorator in self.expression(module, mark, names):
                made = self.call(decorator, [value], {})
                value = made[0] if made else value
        names[node.name] = value

    def _assign(
        self,
        module: Module,
        targets: Iterable[ast.expr],
        value: ast.expr,
        names: dict[str, Value],
    ) -> None:
        found = self.expression(module, value, names)
        for target in targets:
            if isinstance(target, ast.Name):
                names.pop(target.id, None)
                if found:
                    names[target.id] = found[0]
            elif isinstance(target, ast.Attribute):
                self._store(module, target, found, names)
            elif isinstance(target, ast.Subscript):
                self.put(module, target, names)

    def _store(
        self,
        module: Module,
        target: ast.Attribute,
        found: Sequence[Value],
        names: Mapping[str, Value],
    ) -> None:
        holders: Sequence[Value | None] = self.expression(module, target.value, names)
        for holder in holders or [None]:
            if not isinstance(holder, Instance):
                value = found[0] if found else None
                self.stored(module, target, Stored(holder, target.attr, value))
            elif found:
                holder.attributes[target.attr] = found[0]

    def _called(self, module: Module, node: ast.Call, names: Mapping[str, Value]) -> list[Value]:
        if (made := self._made(module, node, names)) is not None:
            return made
        arguments = list(self._arguments(module, node, names))
        words = {
            word.arg: found[0]
            for word in node.keywords
            if word.arg and (found := self.expression(module, word.value, names))
        }
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "__getitem__"}:
            for table in self.expression(module, node.func.value, names):
                if isinstance(table, Table):
                    keys, default = arguments[:1], arguments[1:2]
                    return self._entry(table, keys) or [one for one in default if one is not None]
        called = self.expression(module, node.func, names)
        if not called:
            self.unfollowed(module, node, [*arguments, *words.values()])
        returned = [one for value in called for one in self.call(value, arguments, words)]
        if returned:
            return returned
        # A registry that is more than a table: what is registered under the constant it is given.
        return [
            one for value in called for one in self._registered(home_of(value, module), arguments)
        ]

    def _arguments(
        self, module: Module, node: ast.Call, names: Mapping[str, Value]
    ) -> Iterator[Value | None]:
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                return
            found = self.expression(module, argument, names)
            yield found[0] if found else None

    def _made(
        self, module: Module, node: ast.Call, names: Mapping[str, Value]
    ) -> list[Value] | None:
        """What the helpers of `functools` and `typing` make; None for any other call."""
        name = ast.unparse(node.func).rpartition(".")[2]
        arguments = node.args
        if name == "wraps" and arguments:
            return [Copying()]
        if name == "update_wrapper" and arguments:
            return self.expression(module, arguments[0], names)
        if name == "cast" and len(arguments) == 2:
            return self.expression(module, arguments[1], names)
        if name == "partial" and arguments:
            first = [self.expression(module, one, names) for one in arguments[1:]]
            known = tuple(found[0] if found else None for found in first)
            return [
                Closure(one.function, one.names, (*one.first, *known))
                for one in self.expression(module, arguments[0], names)
                if isinstance(one, Closure)
            ]
        return None

    def _global(self, module: Module, name: str) -> list[Value]:
        found = self._program.resolve(module, name)
        if isinstance(found, FunctionRef):
            return [Closure(found)]
        if found is not None:
            return [found]
        bound = module.imports.get(name)
        origin = self._program.module(bound.module) if bound and bound.attribute else None
        if origin is not None and bound is not None and bound.attribute is not None:
            return self._global(origin, bound.attribute) if origin is not module else []
        definition = module.definitions.get(name)
        value = definition.value if isinstance(definition, ast.Assign | ast.AnnAssign) else None
        if value is None or self._depth >= MAX_CALLS:
            return []
        self._depth += 1
        try:
            return self.expression(module, value, {})
        finally:
            self._depth -= 1

    def _attribute(self, value: Value, name: str) -> list[Value]:
        if isinstance(value, Instance):
            if name in value.attributes:
                return [value.attributes[name]]
            method = self.method(value, name)
            return [method] if method else []
        if isinstance(value, ModuleRef):
            module = self._program.module(value.name)
            if module is not None and name in module.definitions:
                return self._global(module, name)
        if isinstance(value, ModuleRef | ClassRef):
            found = self._program.member(value, name)
            return [Closure(found) if isinstance(found, FunctionRef) else found] if found else []
        return []

    def method(self, value: Instance, name: str) -> Closure | None:
        """A method of an object, with the object as its first argument."""
        found = self._program.method(value.cls, name)
        return Closure(found, {}, (value,)) if found else None

    def _construct(
        self, cls: ClassRef, arguments: Sequence[Value | None], words: Words
    ) -> Instance:
        made = Instance(cls, {})
        constructor = self.method(made, "__init__")
        if constructor is not None:
            self._run(constructor, [made, *arguments], words)
        return made

    def _entry(self, table: Value, keys: Sequence[Value | None]) -> list[Value]:
        if not isinstance(table, Table):
            return []
        wanted = [key.value for key in keys if isinstance(key, Constant)]
        for key, value in zip(table.node.keys, table.node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in wanted:
                return self.expression(table.module, value, table.names)
        return self._registered(table.module, keys)

    def _registered(self, home: Module, keys: Iterable[Value | None]) -> list[Value]:
        """The functions and objects that stand under a string around a module."""
        found: list[Value] = []
        for key in texts(keys):
            for module, node in registered(self._program, home, key):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.append(Closure(FunctionRef(module, node)))
                else:
                    found += self.expression(module, node, {})
        return [value for value in found if isinstance(value, Closure | Instance)]

    def decide(self, module: Module, test: ast.expr, names: Mapping[str, Value]) -> bool | None:
        """Whether a condition certainly holds, or certainly does not; None if neither is known."""
        match test:
            case ast.BoolOp(op=op, values=values):
                ways = [self.decide(module, one, names) for one in values]
                settles = isinstance(op, ast.Or)
                if settles in ways:
                    return settles
                return None if None in ways else not settles
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                decided = self.decide(module, operand, names)
                return None if decided is None else not decided
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                here = self.expression(module, left, names)
                there = self.expression(module, right, names)
                return compared(op, here, there) if len(here) == len(there) == 1 else None
        return None
