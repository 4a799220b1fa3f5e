"""Everything the rules ask of a function, collected in one visit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m

from .expressions import Load, children, dotted, loads, names, split_address, value_names

_RANGE = m.Call(
    func=m.Name("range")
    | m.Name("prange")
    | m.Attribute(attr=m.Name("range") | m.Name("static_range") | m.Name("prange"))
)


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A `for` or `while`; `index` are the names that a `for` binds, `source` what it runs over.

    A function that calls itself is a loop as well, without a source.
    """

    node: cst.For | cst.While | cst.FunctionDef
    index: frozenset[str]
    source: cst.BaseExpression | None

    @property
    def counts(self) -> bool:
        """Whether it runs over consecutive numbers."""
        return self.source is not None and m.matches(self.source, _RANGE)


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """An assignment; `guards` are the conditions under which it runs, outermost first."""

    targets: frozenset[str]
    value: cst.BaseExpression
    loops: tuple[Loop, ...]
    guards: tuple[cst.BaseExpression, ...]
    augmented: bool
    node: cst.CSTNode
    # A parameter's value in a call of the function by itself.
    recursive: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A write by index: `x[i] = v`, `tl.store(ptr + i, v)`, `x.append(v)` (without index)."""

    base: frozenset[str]
    index: frozenset[str]
    index_nodes: tuple[cst.CSTNode, ...]
    value: cst.CSTNode | None
    loops: tuple[Loop, ...]
    node: cst.CSTNode


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An expression or a jump, with the loops and conditions around it."""

    node: cst.CSTNode
    loops: tuple[Loop, ...]
    guards: tuple[cst.BaseExpression, ...]


@dataclass(slots=True)
class Facts:
    """What one function binds, compares, stores, calls and leaves early."""

    parameters: frozenset[str] = frozenset()
    recursion: Loop | None = None
    loops: list[Loop] = field(default_factory=list)
    binds: list[Bind] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    compares: list[Site] = field(default_factory=list)
    calls: list[Site] = field(default_factory=list)
    exits: list[Site] = field(default_factory=list)
    conditions: list[Site] = field(default_factory=list)
    returns: list[cst.BaseExpression] = field(default_factory=list)
    _bound: dict[str, list[Bind]] = field(default_factory=dict)
    _expanded: dict[tuple[object, ...], list[cst.CSTNode]] = field(default_factory=dict)
    _carried: dict[Loop, frozenset[str]] = field(default_factory=dict)

    @property
    def rounds(self) -> list[Loop]:
        """The loops, and the function itself where it calls itself."""
        return [*self.loops, *([self.recursion] if self.recursion else [])]

    def inside(self, loop: Loop) -> list[Bind]:
        """The assignments of a loop's body, nested loops included."""
        return [bind for bind in self.binds if loop in bind.loops]

    def carried(self, loop: Loop) -> frozenset[str]:
        """The names that a loop takes from one round to the next: bound before it and in it."""
        if loop not in self._carried:
            inner = {name for bind in self.inside(loop) for name in bind.targets}
            outer = {name for bind in self.binds if loop not in bind.loops for name in bind.targets}
            self._carried[loop] = frozenset(inner & (outer | self.parameters)) - loop.index
        return self._carried[loop]

    def bindings(self, name: str) -> list[Bind]:
        """The assignments of a name."""
        if not self._bound:
            for bind in self.binds:
                for target in bind.targets:
                    self._bound.setdefault(target, []).append(bind)
        return self._bound.get(name, [])

    def expand(
        self,
        start: cst.CSTNode,
        loop: Loop | None,
        stop: Iterable[str] = (),
        read: Callable[[cst.CSTNode], frozenset[str]] = names,
    ) -> list[cst.CSTNode]:
        """An expression and those that its names stand for, through assignments.

        Args:
            start: the expression.
            loop: follow only assignments in this loop; None follows all of the function.
            stop: names that are not looked behind.
            read: which names of an expression are followed.
        """
        key = (start, loop, frozenset(stop), read is names)
        if key not in self._expanded:
            self._expanded[key] = self._expand(start, loop, set(stop), read)
        return self._expanded[key]

    def _expand(
        self,
        start: cst.CSTNode,
        loop: Loop | None,
        halted: set[str],
        read: Callable[[cst.CSTNode], frozenset[str]],
    ) -> list[cst.CSTNode]:
        found, queue = [start], [start]
        while queue:
            for name in read(queue.pop()) - halted:
                halted.add(name)
                for bind in self.bindings(name):
                    if loop is None or loop in bind.loops:
                        found.append(bind.value)
                        queue.append(bind.value)
        return found

    def reads(self, start: cst.CSTNode, loop: Loop | None, stop: Iterable[str] = ()) -> list[Load]:
        """The loads behind an expression."""
        return [load for part in self.expand(start, loop, stop) for load in loads(part)]

    def value_reads(self, start: cst.CSTNode, loop: Loop, stop: Iterable[str] = ()) -> list[Load]:
        """The loads whose value an expression takes on; mere comparisons are left out."""
        parts = self.expand(start, loop, stop, read=value_names)
        return [load for part in parts for load in loads(part, into_comparisons=False)]

    def behind(
        self, parts: Iterable[cst.CSTNode], loop: Loop | None, stop: Iterable[str] = ()
    ) -> frozenset[str]:
        """All names that expressions depend on."""
        stop = tuple(stop)
        return frozenset(
            name
            for part in parts
            for expression in self.expand(part, loop, stop)
            for name in names(expression)
        )

    def counted(self, loop: Loop) -> frozenset[str]:
        """The names that a loop carries along and counts up or down."""
        return frozenset(
            name
            for bind in self.inside(loop)
            for name in bind.targets & self.carried(loop)
            if self.counts(bind, name)
        )

    def counts(self, bind: Bind, name: str) -> bool:
        """Whether an assignment only counts: `n += 1`, `n = n + 1`, `m = n + 1; n = m`."""
        if bind.augmented:
            return m.matches(bind.node, m.AugAssign(operator=m.AddAssign() | m.SubtractAssign()))
        value: cst.BaseExpression = bind.value
        if isinstance(value, cst.Name) and value.value != name:
            made = [other for other in self.bindings(value.value) if other.loops == bind.loops]
            value = made[0].value if len(made) == 1 else value
        step = m.BinaryOperation(left=m.Name(name), operator=m.Add() | m.Subtract())
        counted = m.matches(value, step | m.BinaryOperation(right=m.Name(name), operator=m.Add()))
        return counted and not loads(value)


def is_equality(node: cst.CSTNode) -> bool:
    """Whether a comparison asks for sameness, not for order."""
    if isinstance(node, cst.Comparison):
        same = m.Equal() | m.NotEqual() | m.Is() | m.IsNot()
        return all(m.matches(target.operator, same) for target in node.comparisons)
    return isinstance(node, cst.Call)


def comparison_sides(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The operands of a comparison, written as an operator or as a method (`a.eq(b)`)."""
    if isinstance(node, cst.Comparison):
        return [node.left, *(target.comparator for target in node.comparisons)]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return [node.func.value, *(argument.value for argument in node.args)]
    return []


def collect(function: cst.FunctionDef) -> Facts:
    """Walk a function once and sort what it does."""
    facts = Facts(parameters=frozenset(_parameters(function)))
    _Collector(facts, function).walk(function.body)
    if facts.recursion is not None and not any(
        facts.recursion in bind.loops and bind.recursive for bind in facts.binds
    ):
        facts.recursion = None
    return facts


def _parameters(function: cst.FunctionDef) -> list[str]:
    listed = function.params
    every = [*listed.posonly_params, *listed.params, *listed.kwonly_params]
    return [parameter.name.value for parameter in every]


_COMPARE_CALL = m.Call(
    func=m.Attribute(attr=m.Name("eq") | m.Name("ne") | m.Name("equal") | m.Name("not_equal"))
)


class _Collector:
    """Walks statements and expressions, and keeps track of the loops and conditions around."""

    def __init__(self, facts: Facts, function: cst.FunctionDef) -> None:
        self._facts = facts
        self._own = {function.name.value, f"self.{function.name.value}"}
        self._parameters = [name for name in _parameters(function) if name != "self"]
        # All of the function is one round, if it turns out to call itself.
        facts.recursion = Loop(function, frozenset(), None)
        self._loops: tuple[Loop, ...] = (facts.recursion,)
        self._guards: tuple[cst.BaseExpression, ...] = ()

    def walk(self, node: cst.CSTNode) -> None:
        """Sort one node, then what is below it."""
        loops, guards = self._loops, self._guards
        match node:
            case cst.For():
                self._for(node)
            case cst.While():
                self._enter(Loop(node, frozenset(), node.test))
                self._condition(node.test)
            case cst.If():
                self._condition(node.test)
            case cst.Comparison():
                self._facts.compares.append(self._site(node))
            case cst.Call():
                self._call(node)
            case cst.Break() | cst.Return():
                self._leave(node)
            case _:
                self._assign(node)
        for child in children(node):
            self.walk(child)
        self._loops, self._guards = loops, guards

    def _site(self, node: cst.CSTNode) -> Site:
        return Site(node, self._loops, self._guards)

    def _enter(self, loop: Loop) -> None:
        self._facts.loops.append(loop)
        self._loops = (*self._loops, loop)

    def _for(self, node: cst.For) -> None:
        loop = Loop(node, frozenset(_target_names(node.target)), node.iter)
        self._enter(loop)
        if not loop.counts:
            self._bind(node.target, node.iter, node, False)

    def _condition(self, test: cst.BaseExpression) -> None:
        self._facts.conditions.append(self._site(test))
        self._guards = (*self._guards, test)

    def _leave(self, node: cst.Break | cst.Return) -> None:
        self._facts.exits.append(self._site(node))
        if isinstance(node, cst.Return) and node.value is not None:
            self._facts.returns.append(node.value)

    def _call(self, node: cst.Call) -> None:
        self._facts.calls.append(self._site(node))
        if m.matches(node, _COMPARE_CALL):
            self._facts.compares.append(self._site(node))
        store = _store_call(node, self._loops)
        if store is not None:
            self._facts.stores.append(store)
            self._grow(store)
        if dotted(node.func) in self._own:
            self._recurse(node)

    def _grow(self, store: Store) -> None:
        """A list that is appended to takes on the value: its last element may be read again."""
        if not store.index_nodes and isinstance(store.value, cst.BaseExpression):
            self._facts.binds.append(
                Bind(store.base, store.value, self._loops, self._guards, False, store.node)
            )

    def _recurse(self, node: cst.Call) -> None:
        for place, argument in enumerate(node.args):
            keyword = argument.keyword.value if argument.keyword else None
            if keyword is None and place < len(self._parameters):
                keyword = self._parameters[place]
            if keyword is not None:
                bound = frozenset({keyword})
                self._facts.binds.append(
                    Bind(bound, argument.value, self._loops, self._guards, False, node, True)
                )

    def _assign(self, node: cst.CSTNode) -> None:
        match node:
            case cst.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target.target, value, node, False)
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                self._bind(target, value, node, False)
            case cst.AugAssign(target=target, value=value):
                self._bind(target, value, node, True)
            case cst.NamedExpr(target=target, value=value):
                self._bind(target, value, node, False)

    def _bind(
        self, target: cst.CSTNode, value: cst.BaseExpression, node: cst.CSTNode, augmented: bool
    ) -> None:
        bound = frozenset(_target_names(target))
        if bound:
            self._facts.binds.append(Bind(bound, value, self._loops, self._guards, augmented, node))
        for written in _subscripts(target):
            index = tuple(item.slice for item in written.slice)
            found = frozenset(name for part in index for name in names(part))
            self._facts.stores.append(
                Store(names(written.value), found, index, value, self._loops, node)
            )


def _store_call(node: cst.Call, loops: tuple[Loop, ...]) -> Store | None:
    if not isinstance(node.func, cst.Attribute):
        return None
    arguments = [argument.value for argument in node.args]
    called = node.func.attr.value
    if called == "store" and len(arguments) >= 2:
        pointer, offsets = split_address(arguments[0])
        index = frozenset(name for part in offsets for name in names(part))
        return Store(names(pointer), index, tuple(offsets), arguments[1], loops, node)
    if called in {"append", "add", "extend"} and len(arguments) == 1:
        return Store(names(node.func.value), frozenset(), (), arguments[0], loops, node)
    if called in {"index_copy_", "scatter_", "index_put_"} and len(arguments) >= 2:
        index = frozenset(name for part in arguments[:-1] for name in names(part))
        value = arguments[-1]
        return Store(names(node.func.value), index, tuple(arguments[:-1]), value, loops, node)
    return None


def _target_names(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _target_names(element.value)


def _subscripts(target: cst.CSTNode) -> Iterator[cst.Subscript]:
    if isinstance(target, cst.Subscript):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _subscripts(element.value)
