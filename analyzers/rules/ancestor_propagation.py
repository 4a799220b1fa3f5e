"""Acceptance handed down from parents to children, for all nodes at once, is a tree walk."""

from __future__ import annotations

from collections.abc import Iterator

from ..result import Stage, StageVerdict
from ..shapes.expressions import Load, names
from ..shapes.facts import Bind, Facts, Loop, comparison_sides, is_equality
from ..shapes.outline import Outline
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class AncestorPropagation(Rule):
    """A node is accepted when its parent is and its token is what the target said at the parent.

    Acceptance is an array over nodes that a loop reads through an array of parents (one level per
    round, or by pointer doubling), while the drafted tokens are compared with the target's tokens
    gathered at the parents.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        return outline.loops > 0 and outline.compares > 0

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            for link in _links(facts, loop):
                if link and _compares_at(facts, link, view.logits):
                    yield self.at(
                        view,
                        loop.node,
                        f"acceptance is handed down through `{min(link)}`, and drafted tokens are "
                        "compared with the target's token at the parent: any root-to-node path "
                        "can be accepted",
                    )
                    return

    FOUND = (
        Example(
            """
def accept(tokens, parents, target_ids, depth):
    fits = tokens == target_ids.gather(1, parents)
    ok = fits.clone()
    for _ in range(depth):
        ok = fits & torch.gather(ok, 1, parents)
    return ok
"""
        ),
        Example(
            """
def accept(tokens, parents, target_ids, rounds):
    ok = tokens == target_ids[parents]
    jump = parents
    for _ in range(rounds):
        ok = ok & ok[jump]
        jump = jump[jump]
    return ok
"""
        ),
        Example(
            """
def accept(tokens, parents, target_ids, n):
    ok = [True] + [False] * n
    for j in range(1, n + 1):
        ok[j] = ok[parents[j]] and tokens[j] == target_ids[parents[j]]
    return ok
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def accept(tokens, target_ids, n):
    ok = tokens == target_ids
    for i in range(1, n):
        ok[i] = ok[i] & ok[i - 1]
    return ok
"""
        ),
        Example(
            """
def masks(parents, n, tokens, target_ids):
    seen = eye(n)
    for j in range(n):
        seen[j] = seen[j] | seen[parents[j]]
    return seen, tokens == target_ids
"""
        ),
        Example(
            """
def ranks(order, values, target_ids):
    for _ in range(3):
        values = values[order]
    return values == target_ids
"""
        ),
    )


def _links(facts: Facts, loop: Loop) -> Iterator[frozenset[str]]:
    """The arrays of parents through which the loop reads what it writes."""
    for bind in facts.inside(loop):
        yield _inherits(facts, loop, bind)
    for store in facts.stores:
        if loop in store.loops and store.value is not None:
            for load in facts.reads(store.value, loop):
                if load.base & store.base and load.index - store.index:
                    yield load.index - store.index - loop.index


def _inherits(facts: Facts, loop: Loop, bind: Bind) -> frozenset[str]:
    carried = facts.carried(loop)
    for load in facts.value_reads(bind.value, loop, stop=carried):
        if bind.targets & carried & load.base:
            return _link(loop, load)
    return frozenset()


def _link(loop: Loop, load: Load) -> frozenset[str]:
    """The names of the arrays that index a load; counters alone are no links."""
    return frozenset(
        name
        for part in load.index_nodes
        for name in names(part)
        if name not in loop.index and not name.startswith(".")
    )


def _compares_at(facts: Facts, link: frozenset[str], logits: frozenset[str]) -> bool:
    known = _sources(facts, link)
    for site in facts.compares:
        if not is_equality(site.node):
            continue
        for side in comparison_sides(site.node):
            for load in facts.reads(side, None):
                if load.base & logits and load.index & known:
                    return True
    return False


def _sources(facts: Facts, link: frozenset[str]) -> frozenset[str]:
    """The link and what it was first made of: `jump` starts as `parents`."""
    found = set(link)
    for bind in facts.binds:
        if bind.targets & link:
            found |= names(bind.value)
    return frozenset(found)
