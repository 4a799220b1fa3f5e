"""A row of a mask that starts as its parent's row."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import is_constant, loads, walk
from ..shapes.facts import Facts, Loop, Store
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_UNIONS = frozenset({"logical_or", "bitwise_or", "clone", "copy"})
_UNION = m.BinaryOperation(operator=m.BitOr()) | m.Call(
    func=m.Attribute(attr=m.Name(m.MatchIfTrue(_UNIONS.__contains__)))
)


class InheritedVisibility(Rule):
    """Each node sees what its parent sees, and itself.

    A row of the mask, or a word of visibility bits, is made of the row or word of its parent; the
    result is an ancestors-only mask of its own for every tree.
    """

    stage = Stage.ATTENTION
    supports = StageVerdict.TREE
    scope = Scope.ATTENTION

    def gate(self, outline: Outline) -> bool:
        reads = (
            ast.Subscript in outline.looped or {"gather", "index_select", "store"} & outline.called
        )
        return outline.loops > 0 and bool(reads)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            for store in facts.stores:
                if loop in store.loops and _inherits(facts, loop, store):
                    yield self.at(view, store.node, _MESSAGE, store.base)
                    return
            doubled = _doubled(facts, loop)
            if doubled:
                yield self.at(view, loop.node, _MESSAGE, doubled)
                return

    FOUND = (
        Example(
            """
def words(parents, n):
    seen = [1] * (n + 1)
    for j in range(1, n + 1):
        seen[j] = seen[parents[j]] | (1 << j)
    return seen
"""
        ),
        Example(
            """
def visible(parents, eye, rounds):
    seen = eye
    jump = parents
    for _ in range(rounds):
        seen = seen | seen.gather(1, jump)
        jump = jump.gather(1, jump)
    return seen
"""
        ),
        Example(
            """
def visible(parents, each, n):
    seen = torch.zeros((4, n, n), dtype=torch.bool)
    for j in range(n):
        seen[:, j] = seen[each, parents[:, j]]
        seen[:, j, j] = True
    return seen
"""
        ),
        Example(
            """
def visible(parents, seen, n):
    for j in range(1, n):
        seen[j] |= seen[parents[j]]
    return seen
"""
        ),
        Example(
            """
def kernel(out_ptr, parent_ptr, count):
    for row in range(1, count):
        above = tl.load(parent_ptr + row)
        word = tl.load(out_ptr + above)
        tl.store(out_ptr + row, word | (1 << row))
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def causal(n):
    seen = [1] * n
    for j in range(1, n):
        seen[j] = seen[j - 1] | (1 << j)
    return seen
"""
        ),
        Example(
            """
def scatter(table, order, n):
    for j in range(n):
        table[j] = table[order[j]]
    return table
"""
        ),
        Example(
            """
def flags(bits, n):
    out = 0
    for j in range(n):
        out = out | (bits[j] << j)
    return out
"""
        ),
    )


_MESSAGE = "a row's visibility starts as its parent's: draft rows see their ancestors only"


def _inherits(facts: Facts, loop: Loop, store: Store) -> bool:
    if store.value is None or not store.index_nodes:
        return False
    parts = facts.expand(store.value, loop)
    united = m.matches(store.node, m.AugAssign(operator=m.BitOrAssign())) or any(
        m.matches(node, _UNION) for part in parts for node in walk(part)
    )
    if not united and not _opens_itself(facts, loop, store):
        return False
    return any(
        load.base & store.base and _through_link(facts, loop, load.index_nodes)
        for part in parts
        for load in loads(part)
    )


def _opens_itself(facts: Facts, loop: Loop, store: Store) -> bool:
    """Whether the loop also writes a constant into the copy: the row sees itself."""
    return any(
        other is not store
        and loop in other.loops
        and other.base == store.base
        and other.value is not None
        and is_constant(other.value)
        for other in facts.stores
    )


def _through_link(facts: Facts, loop: Loop, index: tuple[cst.CSTNode, ...]) -> bool:
    """Whether an index is itself loaded at the loop's counter."""
    for part in index:
        for load in facts.reads(part, loop):
            if load.index & loop.index and not all(base.startswith(".") for base in load.base):
                return True
    return False


def _doubled(facts: Facts, loop: Loop) -> frozenset[str]:
    """`seen` of `seen |= seen[jump]; jump = jump[jump]`, for all rows at once."""
    carried = facts.carried(loop)
    jumps = {
        name
        for bind in facts.inside(loop)
        for name in bind.targets & carried
        for load in loads(bind.value)
        if name in load.base and name in load.index
    }
    for bind in facts.inside(loop):
        if not any(m.matches(node, _UNION) for node in walk(bind.value)):
            continue
        for load in loads(bind.value):
            if bind.targets & load.base & carried and load.index & jumps:
                return bind.targets
    return frozenset()
