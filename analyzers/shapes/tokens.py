"""Whether a walk over pointers asks, at each position, what the target said there."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from .expressions import Load, is_constant, names
from .facts import Facts, Loop, Site, comparison_sides, is_equality


@dataclass(frozen=True, slots=True)
class TokenTest:
    """The half of a tree walk that compares tokens.

    Args:
        facts: the function.
        loop: the walk.
        pointers: the names that hold its position.
        links: the arrays through which it moves.
        logits: the names that hold what the target said.
    """

    facts: Facts
    loop: Loop
    pointers: frozenset[str]
    links: frozenset[str]
    logits: frozenset[str]

    def passes(self) -> bool:
        """Whether the target's token at the position is compared, or is the key of a look-up."""
        kept = self._kept_tokens()
        for site in self.facts.compares:
            if self.loop not in site.loops:
                continue
            sides = comparison_sides(site.node)
            for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
                if is_constant(there) or is_constant(here):
                    continue
                if is_equality(site.node) and names(here) & kept:
                    return True
                if self._compared(site, here, there):
                    return True
        return self._looked_up()

    def _compared(self, site: Site, here: cst.BaseExpression, there: cst.BaseExpression) -> bool:
        """Whether what the target said at the pointer is held against something else."""
        if not self.facts.behind([here, there], self.loop) & self.logits:
            return False
        read = self._read_at(here)
        # One array compared with itself (the failure links of a string search) is no walk.
        others = self._sources(there)
        target = [load for load in read if load.base & self.logits and not load.base & others]
        if is_equality(site.node):
            return bool(target)
        # A probability of the target, against a coin that belongs to the same node.
        coin = self._read_at(there)
        return bool(coin and target)

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

    def _read_at(self, side: cst.CSTNode) -> list[Load]:
        """The loads behind a value that are made at the pointer, other than of links."""
        return [
            load
            for load in self.facts.reads(side, self.loop, stop=self.pointers)
            if self._at_pointer(load) and not load.base <= self.links
        ]

    def _at_pointer(self, load: Load) -> bool:
        index = self.facts.behind(load.index_nodes, self.loop, stop=self.pointers)
        return bool(index & self.pointers)

    def _sources(self, side: cst.CSTNode) -> frozenset[str]:
        """What a value is read from."""
        bases = [load.base for load in self.facts.reads(side, self.loop, stop=self.pointers)]
        return frozenset[str]().union(*bases) if bases else names(side)

    def _looked_up(self) -> bool:
        """`cur = children[cur].get(target[cur])`: the key is what the target said there."""
        return any(
            key.base & self.logits and self._at_pointer(key) and not key.base <= table.base
            for bind in self.facts.inside(self.loop)
            if bind.targets & self.pointers
            for table in self.facts.reads(bind.value, self.loop, stop=self.pointers)
            for part in table.index_nodes
            for key in self.facts.reads(part, self.loop, stop=self.pointers)
        )
