"""The marks of expressions, and what assignments do to names."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from ..program.reach import Edge, Reached
from ..program.receivers import Scope
from ..program.survey import parts_of
from ..program.taint import DESCRIPTIONS, SEEDS
from .code import Code
from .marks import NOTHING, VERIFIED, Mark, Way, decided, mixed


class Values(ABC):
    """One run of one function: `state` maps names, and attributes of `self`, to marks."""

    def __init__(self, code: Code, reached: Reached, given: dict[str, Mark], depth: int) -> None:
        self._code = code
        self._reached = reached
        self._depth = depth
        self._scope: Scope = code.receivers.scope(reached.function, reached.receiver)
        self._file = reached.function.module.path
        self._names = code.names.get(reached, set())
        self._own = code.is_own(reached)
        self._edges: dict[int, list[Edge]] = {}
        for edge in code.reach.edges[reached]:
            self._edges.setdefault(id(edge.site), []).append(edge)
        self._verifiers = code.found.get(id(reached.function.node), [])
        self._given = given
        self.state: dict[str, Mark] = dict(given)
        self._local: dict[str, ast.FunctionDef] = {}
        self._returned: list[tuple[ast.AST, Mark]] = []
        self._kept: list[tuple[ast.AST, Mark]] = []
        self._chosen: set[Way] = set()
        # Names that held nothing of the target's until a call made something of it.
        self._turned: set[str] = set()
        self._drafted = {name for name, mark in given.items() if not mark}

    @abstractmethod
    def _body(self, statements: Iterable[ast.stmt]) -> None:
        """Run statements."""

    @abstractmethod
    def _call(self, call: ast.Call) -> Mark:
        """What a call gives."""

    def _assign(self, target: ast.expr, mark: Mark, value: ast.expr) -> None:
        match target:
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values: Sequence[ast.expr] = [value] * len(elements)
                if isinstance(value, ast.Tuple) and len(value.elts) == len(elements):
                    values = value.elts
                    marks = [self._value(one) for one in values]
                else:
                    marks = [mark] * len(elements)
                for element, each, one in zip(elements, marks, values, strict=True):
                    self._assign(element, each, one)
            case ast.Starred(value=inner):
                self._assign(inner, mark, value)
            case ast.Name(id=name):
                self._turn(name, mark)
                self.state[name] = mark
            case _:
                self._write(target, mark, strong=False)

    def _turn(self, name: str, mark: Mark) -> None:
        if mark.raw and not self._named(name) and name in self._drafted:
            self._turned.add(name)

    def _write(self, target: ast.expr, mark: Mark, *, strong: bool) -> None:
        """Something is written into what an expression names."""
        match target:
            case ast.Name(id=name):
                self._turn(name, mark)
                self.state[name] = mark if strong else self._named(name) | mark
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                self.state[f"self.{attr}"] = mark
                self._kept.append((target, mark))
            case ast.Attribute(value=holder):
                self._kept.append((target, mark))
                # An object that holds something verified is one, whatever else it held.
                self._write(holder, mark, strong=mark.settled)
            case ast.Subscript(value=holder, slice=index):
                chosen = VERIFIED if self._value(index).settled and mark else mark
                self._write(holder, chosen, strong=strong)
            case ast.Starred(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
                # A view: `out[rows].view(-1).copy_(x)`.
                self._write(inner, mark, strong=strong)

    def _named(self, name: str) -> Mark:
        if name in self.state:
            return self.state[name]
        return self._raw(name) if name in self._names or self._seed(name) else NOTHING

    def _seed(self, name: str) -> bool:
        return self._own and name in SEEDS

    def _raw(self, text: str) -> Mark:
        line = self._reached.function.node.lineno
        return Mark(raw=frozenset({Way(self._file, line, text)}))

    def _value(self, node: ast.expr) -> Mark:
        match node:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._selected(self._value(test), self._value(body), self._value(orelse))
            case ast.BoolOp(values=values):
                found = NOTHING
                for one in values:
                    found |= self._value(one)
                return found
            case ast.NamedExpr(target=target, value=value):
                mark = self._value(value)
                self._assign(target, mark, value)
                return mark
            case ast.Lambda() | ast.Constant():
                return NOTHING
        return self._compounded(node)

    def _compounded(self, node: ast.expr) -> Mark:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                self._assign(generator.target, self._value(generator.iter), generator.iter)
        marks = [self._value(part) for part in parts_of(node) if isinstance(part, ast.expr)]
        # `x is None` tells nothing of x, though it may give it a name.
        identity = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)
        return NOTHING if identity else mixed(marks)

    def _selected(self, test: Mark, body: Mark, orelse: Mark) -> Mark:
        return decided(body | orelse) if test.settled else body | orelse

    def _attribute(self, node: ast.Attribute) -> Mark:
        if node.attr in DESCRIPTIONS:
            return NOTHING
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            text = f"self.{node.attr}"
            return self.state[text] if text in self.state else self._stored(text)
        base = self._value(node.value)
        if not base and (node.attr in self._code.attributes or (self._own and node.attr in SEEDS)):
            return self._raw(ast.unparse(node))
        return base

    def _stored(self, text: str) -> Mark:
        return self._raw(text) if text in self._names else NOTHING
