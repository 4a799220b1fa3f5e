"""Whether a walk over pointers asks, at each position, what the target said there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from .expressions import Load, is_constant, names, walk
from .facts import Bind, Facts, Loop, Site, compares_values, comparison_sides
from .matches import conjuncts, matches_before

Matched = Callable[[], frozenset[str]]
_ORDER = m.LessThan() | m.LessThanEqual() | m.GreaterThan() | m.GreaterThanEqual()


@dataclass(frozen=True, slots=True)
class TokenTest:
    """The half of a tree walk that compares tokens.

    A drafted token, read at a node that the walk may move to, is held against what the target said
    at the walk's position, and the outcome decides where the walk goes or whether it ends.

    Args:
        facts: the function.
        loop: the walk.
        pointers: the names that hold its position.
        links: the arrays through which it moves.
        logits: the names that hold what the target said.
        matched: gives those that hold whether drafted tokens are what the target said.
    """

    facts: Facts
    loop: Loop
    pointers: frozenset[str]
    links: frozenset[str]
    logits: frozenset[str]
    matched: Matched

    def passes(self) -> bool:
        """Whether the target's token at the position is compared, or is the key of a look-up."""
        parts = self._deciding()
        deciding = {id(node) for part in parts for node in walk(part)}
        kept = self._kept_tokens()
        for site in self.facts.compares:
            if self.loop in site.loops and id(site.node) in deciding:
                sides = comparison_sides(site.node)
                for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
                    if self._compared(site, here, there, kept):
                        return True
        return self._looked_up() or self._matched_before(parts)

    def _deciding(self) -> list[cst.CSTNode]:
        """The expressions on which it depends where the walk goes, and whether it goes on."""
        parts: list[cst.CSTNode] = []
        for bind in self._moves():
            parts += [bind.value, *bind.guards]
        for site in [*self.facts.exits, *self.facts.skips]:
            if self.loop in site.loops:
                parts += site.guards
        for site in self.facts.conditions:
            if self.loop in site.loops and any(site.node is one.source for one in site.loops):
                parts.append(site.node)
        return [one for part in parts for one in self.facts.expand(part, self.loop)]

    def _moves(self) -> Iterator[Bind]:
        return (one for one in self.facts.inside(self.loop) if one.targets & self.pointers)

    def _compared(
        self, site: Site, here: cst.BaseExpression, there: cst.BaseExpression, kept: frozenset[str]
    ) -> bool:
        """Whether what the target said at the pointer is held against what was drafted."""
        if is_constant(here) or is_constant(there):
            return False
        if not self.facts.behind([here, there], self.loop) & self.logits:
            return False
        # One array compared with itself (the failure links of a string search) is no walk.
        others = self._sources(there)
        said = [
            load
            for load in self._read_at(here)
            if load.base & self.logits and not load.base & others
        ]
        if compares_values(site.node):
            return bool(said or names(here) & kept) and self._is_drafted(site, there)
        # A probability of the target for the drafted token, against a coin of the same node.
        ordered = m.Comparison(comparisons=[m.ComparisonTarget(operator=_ORDER)])
        return (
            m.matches(site.node, ordered)
            and bool(self._read_at(there))
            and any(self._is_of_token(load) for load in said)
        )

    def _is_drafted(self, site: Site, side: cst.BaseExpression) -> bool:
        """Whether a side is read at a node, or is the array of which the walk takes such nodes."""
        if self._sources(side) <= self.links:
            return False
        if any(self._is_tied(site, load) for load in self._loads(side)):
            return True
        parts = self.facts.expand(side, self.loop)
        return any(map(self._links_nodes, parts)) or self._stands_with_link(site.node)

    def _stands_with_link(self, node: cst.CSTNode) -> bool:
        """Whether one condition asks for a node's token and for its parent: `a == b & c == d`."""
        facts, loop = self.facts, self.loop
        values: list[cst.CSTNode] = [bind.value for bind in facts.inside(loop)]
        values += [site.node for site in facts.conditions if loop in site.loops]
        values += [
            argument.value
            for site in facts.calls
            if loop in site.loops and isinstance(site.node, cst.Call)
            for argument in site.node.args
        ]
        for value in values:
            parts = conjuncts(facts, loop, value)
            if any(part is node for part in parts) and any(map(self._asks_for_link, parts)):
                return True
        return False

    def _links_nodes(self, part: cst.CSTNode) -> bool:
        return any(self._asks_for_link(node) for node in walk(part))

    def _asks_for_link(self, node: cst.CSTNode) -> bool:
        """Whether nodes are asked for whose link is the walk's position."""
        if not isinstance(node, cst.Comparison | cst.Call) or not compares_values(node):
            return False
        sides = [names(side) for side in comparison_sides(node)]
        return any(side & self.pointers for side in sides) and any(
            side & self.links for side in sides
        )

    def _is_tied(self, site: Site, load: Load) -> bool:
        """Whether something is read at the position, or at a node that the loop looks at."""
        counted = frozenset(name for loop in site.loops for name in loop.index)
        index = self.facts.behind(load.index_nodes, self.loop, stop=self.pointers)
        return bool(index & (self.pointers | counted)) and not load.base <= self.links

    def _is_of_token(self, load: Load) -> bool:
        """Whether a probability is that of a drafted token: its index is read at the position."""
        return any(
            self._at_pointer(inner) and not inner.base & self.logits
            for part in load.index_nodes
            for inner in self.facts.reads(part, self.loop, stop=self.pointers)
            if not inner.base <= self.links
        )

    def _kept_tokens(self) -> frozenset[str]:
        """Names that keep the target's token: reloaded exactly where the pointer moves."""
        inside = self.facts.inside(self.loop)
        moves = [bind.guards for bind in inside if bind.targets & self.pointers]
        return frozenset(
            name
            for bind in inside
            for name in bind.targets & self.facts.carried(self.loop) - self.pointers
            if bind.guards in moves
            and bind.guards
            and any(
                load.base & self.logits for load in self.facts.value_reads(bind.value, self.loop)
            )
        )

    def _loads(self, side: cst.CSTNode) -> list[Load]:
        return self.facts.reads(side, self.loop, stop=self.pointers)

    def _read_at(self, side: cst.CSTNode) -> list[Load]:
        """The loads behind a value that are made at the pointer, other than of links."""
        return [
            load
            for load in self._loads(side)
            if self._at_pointer(load) and not load.base <= self.links
        ]

    def _at_pointer(self, load: Load) -> bool:
        index = self.facts.behind(load.index_nodes, self.loop, stop=self.pointers)
        return bool(index & self.pointers)

    def _sources(self, side: cst.CSTNode) -> frozenset[str]:
        """What a value is read from."""
        bases = [load.base for load in self._loads(side)]
        return frozenset[str]().union(*bases) if bases else names(side)

    def _looked_up(self) -> bool:
        """`cur = children[cur].get(target[cur])`: the key is what the target said there, itself."""
        return any(
            key.base & self.logits and self._at_pointer(key) and not key.base <= table.base
            for bind in self._moves()
            for table in self._loads(bind.value)
            for part in table.index_nodes
            for key in self.facts.value_reads(part, self.loop, stop=self.pointers)
        )

    def _matched_before(self, deciding: list[cst.CSTNode]) -> bool:
        """Whether matches of all nodes, made before the walk, decide where it goes."""
        sites = [*self.facts.conditions, *self.facts.compares, *self.facts.calls]
        around = Site(self.loop.node, (self.loop, *(one for s in sites for one in s.loops)), ())
        compared = {id(one) for site in sites for one in _operands(site.node)}
        asked: set[str] = set()
        for part in deciding:
            asked |= {
                node.value
                for node in walk(part)
                if isinstance(node, cst.Name) and node.value in self.logits - self.pointers
                if self._stands_with_link(node)
            }
            for load in self.facts.loads(part):
                if load.base & self.logits and id(load.node) not in compared:
                    asked |= load.base if self._is_tied(around, load) else frozenset()
        if not asked:
            return False
        return bool(asked & (matches_before(self.facts, self.logits) | self.matched()))


def _operands(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What is compared with something, and so is no outcome of a comparison itself."""
    return comparison_sides(node) if isinstance(node, cst.Comparison) else []
