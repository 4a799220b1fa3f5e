"""Everything the rules ask of a function, collected in one visit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m

from .expressions import (
    MODULES,
    Load,
    dotted,
    is_constant,
    loads,
    names,
    value_names,
    walk,
)
from .picks import picks

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
    """A write by index: `x[i] = v`, `tl.store(ptr + i, v)`, `x.append(v)` (without index).

    `guards` are the conditions under which it runs.
    """

    base: frozenset[str]
    index: frozenset[str]
    index_nodes: tuple[cst.CSTNode, ...]
    value: cst.CSTNode | None
    loops: tuple[Loop, ...]
    node: cst.CSTNode
    guards: tuple[cst.BaseExpression, ...] = ()


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
    # Where a loop goes on with its next round.
    skips: list[Site] = field(default_factory=list)
    conditions: list[Site] = field(default_factory=list)
    returns: list[cst.BaseExpression] = field(default_factory=list)
    _bound: dict[str, list[Bind]] = field(default_factory=dict)
    _expanded: dict[tuple[object, ...], list[cst.CSTNode]] = field(default_factory=dict)
    _carried: dict[Loop, frozenset[str]] = field(default_factory=dict)
    _picks: dict[int, Load] | None = None

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
        key = (start, loop, frozenset(stop), read)
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

    def loads(self, node: cst.CSTNode, into_comparisons: bool = True) -> list[Load]:
        """The loads in an expression, and the elements that a one-hot mask picks out in it."""
        return self._loads([node], into_comparisons)

    def _loads(self, parts: Iterable[cst.CSTNode], into_comparisons: bool = True) -> list[Load]:
        found = [load for part in parts for load in loads(part, into_comparisons)]
        if self._picks is None:
            self._picks = dict(picks(self))
        if self._picks:
            every = (id(node) for part in parts for node in walk(part))
            found += [self._picks[one] for one in every if one in self._picks]
        return found

    def reads(self, start: cst.CSTNode, loop: Loop | None, stop: Iterable[str] = ()) -> list[Load]:
        """The loads behind an expression."""
        return self._loads(self.expand(start, loop, stop))

    def value_reads(self, start: cst.CSTNode, loop: Loop, stop: Iterable[str] = ()) -> list[Load]:
        """The loads whose value an expression takes on; mere comparisons are left out."""
        return self._loads(self.expand(start, loop, stop, read=value_names), False)

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


COMPARE_CALL = m.Call(
    func=m.Attribute(attr=m.Name("eq") | m.Name("ne") | m.Name("equal") | m.Name("not_equal"))
)
_VALUES = m.Comparison(comparisons=[m.ComparisonTarget(operator=m.Equal() | m.NotEqual())])


def is_equality(node: cst.CSTNode) -> bool:
    """Whether a comparison asks for sameness, not for order."""
    if isinstance(node, cst.Comparison):
        same = m.Equal() | m.NotEqual() | m.Is() | m.IsNot()
        return all(m.matches(target.operator, same) for target in node.comparisons)
    return isinstance(node, cst.Call)


def compares_values(node: cst.CSTNode) -> bool:
    """Whether an expression asks for equal values, other than whether something is None."""
    if not m.matches(node, _VALUES | COMPARE_CALL):
        return False
    sides = comparison_sides(node)
    return len(sides) > 1 and not any(map(is_constant, sides))


def comparison_sides(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The operands of a comparison, written as an operator, as `a.eq(b)` or as `torch.eq(a, b)`."""
    if isinstance(node, cst.Comparison):
        return [node.left, *(target.comparator for target in node.comparisons)]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        own = [] if dotted(node.func.value) in MODULES else [node.func.value]
        return [*own, *(argument.value for argument in node.args)]
    return []
