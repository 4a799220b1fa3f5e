"""Pointer walks: loops whose position is looked up through itself, not counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from .expressions import MODULES, Load, dotted, is_constant, names, walk
from .facts import Bind, Facts, Loop, comparison_sides, is_equality
from .picks import is_counted
from .tokens import Matched, TokenTest


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop that follows pointers: the names that move, the arrays of links, how they move."""

    pointers: frozenset[str]
    links: frozenset[str]
    how: str


def pointer_walk(
    facts: Facts, loop: Loop, logits: frozenset[str], matched: Matched = frozenset
) -> Walk | None:
    """The walk that a loop makes over linked nodes while it compares tokens with the target's.

    Both halves are needed: the position is loaded or selected through itself, *and* what the
    target said at that position is compared with a drafted token. `matched` gives names that
    hold the outcome for all nodes at once.
    """
    # What the target said is first taken for no link; where that leaves nothing, links and tokens
    # came out of one container, and its name tells nothing.
    for barred in (logits, frozenset[str]()):
        found = _Search(facts, loop, barred).walk()
        if found is not None:
            test = TokenTest(facts, loop, found.pointers, found.links, logits, matched)
            if test.passes():
                return found
    return None


@dataclass(frozen=True, slots=True)
class _Move:
    """One way in which a position moves: the links that it is read through, and a description."""

    links: frozenset[str]
    how: str


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks for the names that hold the walk's position; `barred` are arrays that are no links."""

    facts: Facts
    loop: Loop
    barred: frozenset[str]

    def walk(self) -> Walk | None:
        """The pointers of the loop, if it has any."""
        movers = self._movers()
        pointers: set[str] = set()
        moves: list[_Move] = []
        for bind in self.facts.inside(self.loop):
            for name in sorted(bind.targets & movers):
                if is_constant(bind.value) or self.facts.counts(bind, name):
                    continue
                move = self._loaded(bind, movers) or self._matched(bind, movers)
                if move is not None:
                    pointers.add(name)
                    moves.append(move)
        if not moves:
            return None
        links = frozenset[str]().union(*(move.links for move in moves))
        return Walk(self._with_copies(movers, frozenset(pointers)), links, moves[0].how)

    def _movers(self) -> frozenset[str]:
        """Carried positions that are assigned more than a constant, a count, or a barred value."""
        carried = self.facts.carried(self.loop) & self._positions()
        return frozenset(
            name
            for bind in self.facts.inside(self.loop)
            for name in bind.targets & carried
            if not is_constant(bind.value)
            and not self.facts.counts(bind, name)
            and not any(load.base & self.barred for load in self.facts.loads(bind.value))
        )

    def _positions(self) -> frozenset[str]:
        """The names by which the loop indexes something, or that it asks to equal something."""
        facts, loop = self.facts, self.loop
        parts: list[cst.CSTNode] = [bind.value for bind in facts.inside(loop)]
        parts += [site.node for site in facts.conditions if loop in site.loops]
        parts += [store.value for store in facts.stores if store.value and loop in store.loops]
        found = {
            name for part in parts for load in facts.loads(part) for name in load.index | load.base
        }
        for site in facts.compares:
            if loop in site.loops and is_equality(site.node):
                found.update(name for side in comparison_sides(site.node) for name in _bare(side))
        # A position may be handed on under another name before it is used.
        for bind in facts.inside(loop):
            if bind.targets & found:
                found |= names(bind.value)
        return frozenset(found)

    def _loaded(self, bind: Bind, movers: frozenset[str]) -> _Move | None:
        """`cur = link[cur]`: the new position is read at the old one."""
        for load in self.facts.value_reads(bind.value, self.loop, stop=movers):
            if load.base & self.barred:
                continue
            seen = self.facts.behind(load.index_nodes, self.loop, stop=movers) & movers
            if not seen and load.index and not _slices(load.index_nodes):
                # A level of nested maps: what is looked up in it is the next level.
                seen = load.base & movers
            if seen:
                how = f"`{min(seen)}` is looked up by itself in `{_read_from(load)}`"
                return _Move(load.base, how)
        return None

    def _matched(self, bind: Bind, movers: frozenset[str]) -> _Move | None:
        """`cur = j where parent[j] == cur`: the new position is the node whose link is the old."""
        reached = {
            id(node)
            for part in [bind.value, *bind.guards]
            for expression in self.facts.expand(part, self.loop, stop=movers)
            for node in walk(expression)
        }
        for site in self.facts.compares:
            inside = id(site.node) in reached and self.loop in site.loops
            if not inside or not is_equality(site.node):
                continue
            sides = comparison_sides(site.node)
            for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
                bare = _bare(here) & movers
                if bare and not (names(there) & bare) and self._is_array(there):
                    read = self.facts.reads(there, self.loop)
                    link = frozenset(name for load in read for name in load.base) or names(there)
                    shown = _read_from(read[0]) if read else dotted(there) or min(link)
                    how = f"`{min(bare)}` moves to a node whose `{shown}` equals it"
                    return _Move(link | names(there), how)
        return None

    def _is_array(self, node: cst.BaseExpression) -> bool:
        if is_constant(node) or is_counted(self.facts, node):
            return False
        if self.facts.reads(node, self.loop):
            return True
        return isinstance(node, cst.Name | cst.Attribute) and not names(node) & self.loop.index

    def _with_copies(self, movers: frozenset[str], pointers: frozenset[str]) -> frozenset[str]:
        """Pointers, and carried names that take over a pointer's value (`last = cur`)."""
        found = set(pointers)
        while True:
            before = len(found)
            for bind in self.facts.inside(self.loop):
                if names(bind.value) & found and isinstance(bind.value, cst.Name | cst.Call):
                    found |= bind.targets & movers
            if len(found) == before:
                return frozenset(found)


def _bare(node: cst.BaseExpression) -> frozenset[str]:
    """The names of a value that is itself, at most reshaped: `cur`, `cur[:, None]`."""
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        elif isinstance(node, cst.Subscript) and _reshapes(node):
            node = node.value
        else:
            break
    return names(node) if isinstance(node, cst.Name | cst.Attribute) else frozenset()


def _reshapes(node: cst.Subscript) -> bool:
    return all(
        m.matches(item.slice, m.Slice(lower=None, upper=None) | m.Index(value=m.Name("None")))
        for item in node.slice
    )


def _slices(index: Iterable[cst.CSTNode]) -> bool:
    return any(isinstance(part, cst.Slice) for part in index)


def _read_from(load: Load) -> str:
    """What a load reads, as it is written: `children` of `children[at].get(token)`."""
    node = load.node
    while True:
        text = dotted(node)
        if text is not None:
            return text
        if isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node, cst.BinaryOperation):
            node = node.left
        elif (
            isinstance(node, cst.Call)
            and load.node is node
            and not isinstance(node.func, cst.Attribute)
        ):
            return min(load.base)
        elif isinstance(node, cst.Call):
            function = node.func
            inner = function.value if isinstance(function, cst.Attribute) else function
            if dotted(inner) in MODULES and node.args:
                inner = node.args[0].value
            node = inner
        else:
            return min(load.base, default="?")
