"""A mask that opens, for each node, the columns of its ancestors."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import names
from ..shapes.facts import Facts, Store
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_MADE = frozenset({"full", "zeros", "ones", "empty", "eye", "full_like"})


class AncestorMask(Rule):
    """A square mask over draft rows is opened at each node's ancestors, one node at a time.

    Built once from a configured tree (vLLM's former TREE_ATTN backend) it is the same for every
    request; either way a row no longer sees all rows in front of it.
    """

    stage = Stage.ATTENTION
    supports = StageVerdict.TREE
    scope = Scope.ATTENTION

    def gate(self, outline: Outline) -> bool:
        return outline.loops >= 2 and bool(_MADE & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for mask in _square(facts):
            for store in facts.stores:
                if mask in store.base and len(store.loops) >= 1 and _by_ancestors(facts, store):
                    yield self.at(
                        view,
                        store.node,
                        f"`{mask}` is opened at the ancestors of one node after another: draft "
                        "rows see their ancestors only",
                        (mask,),
                    )
                    return

    FOUND = (
        Example(
            """
def bias(choices, counts):
    size = len(choices) + 1
    mask = torch.full((size, size), -torch.inf)
    for i in range(size):
        mask[i, i] = 0
    row = 0
    for level in range(len(counts)):
        for j in range(counts[level]):
            path = choices[row + j]
            seen = []
            for c in range(len(path) - 1):
                seen.append(choices.index(path[: c + 1]) + 1)
            mask[row + j + 1, seen] = 0
        row += counts[level]
    return mask
"""
        ),
        Example(
            """
def visible(parents, n):
    mask = np.zeros((n, n), dtype=bool)
    for i in range(n):
        at = i
        while at >= 0:
            mask[i, at] = True
            at = parents[at]
    return mask
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def causal(n):
    mask = torch.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            mask[i, j] = 1
    return mask
"""
        ),
        Example(
            """
def padded(rows, width):
    table = np.zeros((len(rows), width))
    for i in range(len(rows)):
        for j in range(width):
            table[i, j] = rows[i][j]
    return table
"""
        ),
        Example(
            """
def relative(n):
    bias = torch.zeros((n, n))
    for i in range(n):
        for j in range(n):
            bias[i, j] = abs(i - j)
    return bias
"""
        ),
    )


def _square(facts: Facts) -> Iterator[str]:
    """Names bound to a freshly made square matrix."""
    for bind in facts.binds:
        call = bind.value
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            continue
        if call.func.attr.value not in _MADE or not call.args:
            continue
        shape = call.args[0].value
        eye = call.func.attr.value == "eye"
        if eye or (isinstance(shape, cst.Tuple | cst.List) and _same_extents(shape)):
            yield from bind.targets


def _same_extents(shape: cst.Tuple | cst.List) -> bool:
    elements = [element.value for element in shape.elements]
    return len(elements) == 2 and elements[0].deep_equals(elements[1])


def _by_ancestors(facts: Facts, store: Store) -> bool:
    """Whether one index of the store is a looked-up ancestor of the other."""
    if len(store.index_nodes) < 2:
        return False
    row, column = store.index_nodes[0], store.index_nodes[1]
    if m.matches(column, m.Slice()) or isinstance(column, cst.Slice):
        return False
    loop = store.loops[0]
    looked_up = _prefix_searches(facts, names(column)) or any(
        _chases(facts, name, store) for name in names(column)
    )
    return looked_up and bool(facts.behind([row], loop))


def _prefix_searches(facts: Facts, holders: frozenset[str]) -> bool:
    """Ancestors found by searching a node's path for its own prefixes."""
    for store in facts.stores:
        if store.base & holders and not store.index_nodes and store.value is not None:
            searched = m.findall(
                store.value,
                m.Call(
                    func=m.Attribute(attr=m.Name("index") | m.Name("get")),
                    args=[m.Arg(value=m.Subscript()), m.ZeroOrMore()],
                ),
            )
            if searched:
                return True
    return False


def _chases(facts: Facts, name: str, store: Store) -> bool:
    """Ancestors found by following parents: the column is loaded by itself."""
    for loop in store.loops:
        carried = facts.carried(loop)
        for bind in facts.inside(loop):
            if name in bind.targets & carried:
                for load in facts.value_reads(bind.value, loop, stop=carried):
                    if name in load.index:
                        return True
    return False
