"""Rows of the cache moved from where the tree wrote them to where a chain would have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import Load, loads, names, walk
from ..shapes.facts import Facts, Store
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class PathCommit(Rule):
    """The accepted path's rows are read at the slots of its nodes and written to contiguous slots.

    One tensor is read through one index and written through another, neither of which is a count;
    or keys and values are gathered at the path and handed to the cache update once more. It counts
    as a commit only on an engine path that verifies trees. Where it is known which names hold what
    the walk decided, they have to be behind the slots.
    """

    stage = Stage.COMMIT
    supports = StageVerdict.TREE
    scope = Scope.COMMIT

    def gate(self, outline: Outline) -> bool:
        moved = {"index_copy_", "index_put_", "scatter_", "store"} & outline.called
        return outline.subscripts > 1 or bool(moved)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for store in facts.stores:
            if _moves(facts, store, view.logits):
                yield self.at(
                    view,
                    store.node,
                    "rows are read at one set of slots and written to another: the accepted path "
                    "becomes contiguous",
                )
                return
        for site in facts.calls:
            if _reissues(call := cst.ensure_type(site.node, cst.Call)) and _decided(
                facts, [call], view.logits
            ):
                yield self.at(
                    view,
                    site.node,
                    "keys and values of the accepted rows are written to the cache again",
                )
                return

    FOUND = (
        Example(
            """
def commit(cache, source, destination):
    cache[:, destination] = cache[:, source]
"""
        ),
        Example(
            """
def commit(cache, slots, path):
    kept = cache.index_select(0, slots[path])
    cache.index_copy_(0, slots[: path.shape[0]], kept)
"""
        ),
        Example(
            """
def kernel(cache_ptr, from_ptr, to_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    origin = tl.load(from_ptr + row)
    goal = tl.load(to_ptr + row)
    kept = tl.load(cache_ptr + origin * width + columns)
    tl.store(cache_ptr + goal * width + columns, kept)
"""
        ),
        Example(
            """
def commit(layer, update, key, value, cache, slots, path):
    update(layer, key[path], value[path], cache, slots)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def shift(cache, n):
    cache[: n - 1] = cache[1:n]
"""
        ),
        Example(
            """
def fill(cache, slots, rows):
    cache[slots] = rows
"""
        ),
        Example(
            """
def accumulate(table, rows):
    table[rows] = table[rows] + 1
"""
        ),
        Example(
            """
def read(table, rows, columns):
    best = table[rows]
    return best[columns]
"""
        ),
    )


def _decided(facts: Facts, parts: Iterable[cst.CSTNode], path: frozenset[str]) -> bool:
    """Whether what the walk decided is behind some expressions, as far as that is known."""
    return not path or bool(facts.behind(parts, None) & path)


def _moves(facts: Facts, store: Store, path: frozenset[str]) -> bool:
    if store.value is None or not store.index_nodes:
        return False
    for load in _origins(facts, store):
        if not _decided(facts, [*load.index_nodes, *store.index_nodes], path):
            continue
        if _looked_up(load.index_nodes, store.index_nodes) and _looked_up(
            store.index_nodes, load.index_nodes
        ):
            return True
    return False


def _looked_up(parts: tuple[cst.CSTNode, ...], others: tuple[cst.CSTNode, ...]) -> bool:
    """Whether an index has a part of its own that is neither a slice nor a constant."""
    return any(
        not isinstance(part, cst.Slice)
        and names(part)
        and not any(part.deep_equals(other) for other in others)
        for part in parts
    )


def _origins(facts: Facts, store: Store) -> Iterator[Load]:
    """The loads of the written tensor that the stored value is, not those it is computed with."""
    if store.value is None:
        return
    for part in facts.expand(store.value, None):
        if any(isinstance(node, cst.BinaryOperation) for node in _outer(part)):
            continue
        for load in loads(part):
            if load.base and load.base == store.base:
                yield load


def _outer(part: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A value and what it is a method call on, without arguments and indices."""
    yield part
    while isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute):
        part = part.func.value
        yield part


def _reissues(call: cst.Call) -> bool:
    """`update(layer, key[path], value[path], cache, slots)`."""
    gathered: list[frozenset[str]] = []
    for argument in call.args:
        value = argument.value
        if isinstance(value, cst.Subscript) and isinstance(value.slice[0].slice, cst.Index):
            index = value.slice[0].slice.value
            if isinstance(index, cst.Name):
                gathered.append(frozenset({index.value}))
    twice = any(gathered.count(index) >= 2 for index in gathered)
    return (
        twice
        and len(call.args) >= 4
        and not any(isinstance(node, cst.ListComp) for node in walk(call))
        and bool(names(call))
    )
