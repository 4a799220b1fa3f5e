"""Rows of the cache moved from where the tree wrote them to where a chain would have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import Load, dotted, loads, names
from ..shapes.facts import Facts, Store
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class PathCommit(Rule):
    """The accepted path's rows are read at the slots of its nodes and written to contiguous slots.

    The KV cache is read through one index and written through another, neither of which is a
    count; or keys and values are gathered at the path and handed to the cache update once more.
    What the walk decided has to be behind the slots: rows that are moved for another reason, and
    rows of hidden states, ids or logits, leave the cache as the tree wrote it.
    """

    stage = Stage.COMMIT
    supports = StageVerdict.TREE
    scope = Scope.COMMIT

    def gate(self, outline: Outline) -> bool:
        moved = {"index_copy_", "index_put_", "scatter_", "store"} & outline.called
        return outline.subscripts > 1 or bool(moved)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts, caches = view.facts, view.held()
        for store in facts.stores:
            if _moves(facts, store, view.logits) and _is_cache(facts, store.base, caches):
                yield self.at(
                    view,
                    store.node,
                    "rows are read at one set of slots and written to another: the accepted path "
                    "becomes contiguous",
                )
                return
        for site in facts.calls:
            call = cst.ensure_type(site.node, cst.Call)
            if _reissues(facts, call, view.logits) and _given_cache(facts, call, caches):
                yield self.at(
                    view,
                    site.node,
                    "keys and values of the accepted rows are written to the cache again",
                )
                return

    FOUND = (
        Example(
            """
def commit(held, target_rows, destination):
    held[:, destination] = held[:, target_rows]
"""
        ),
        Example(
            """
def commit(held, slots, target_path):
    kept = held.index_select(0, slots[target_path])
    held.index_copy_(0, slots[: target_path.shape[0]], kept)
"""
        ),
        Example(
            """
def kernel(held_ptr, target_ptr, to_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    origin = tl.load(target_ptr + row)
    goal = tl.load(to_ptr + row)
    kept = tl.load(held_ptr + origin * width + columns)
    tl.store(held_ptr + goal * width + columns, kept)
"""
        ),
        Example(
            """
def commit(layer, update, key, value, held, slots, target_path):
    update(layer, key[target_path], value[target_path], held, slots)
"""
        ),
        Example(
            """
def commit(held, slots, path, target_length):
    source = slots.gather(1, path)[:, :target_length].flatten()
    destination = slots[:, :target_length].flatten()
    for layer in held:
        layer[destination] = layer[source].clone()
"""
        ),
        Example(
            """
def commit(held, slots, target_path):
    for layer in held:
        layer[slots[: len(target_path)]] = layer[slots[target_path]]
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def shift(held, target_n):
    held[: target_n - 1] = held[1:target_n]
"""
        ),
        Example(
            """
def fill(held, target_slots, rows):
    held[target_slots] = rows
"""
        ),
        Example(
            """
def accumulate(held, target_rows):
    held[target_rows] = held[target_rows] + 1
"""
        ),
        Example(
            """
def read(held, target_rows, columns):
    best = held[target_rows]
    return best[columns]
"""
        ),
        Example(
            """
def hidden_rows(held, hidden_states, target_rows, destination):
    hidden_states[destination] = hidden_states[target_rows]
    return held
"""
        ),
        Example(
            """
def copy_on_write(held, source, destination, target_ids):
    for layer in held:
        layer[destination] = layer[source]
    return target_ids
"""
        ),
        Example(
            """
def batches(held, target_path, first, second, third):
    return Context(held, first[target_path], second[target_path], third)
"""
        ),
        Example(
            """
def record(held, layer, log, key, value, target_path, slots):
    log(layer, key[target_path], value[target_path], slots)
    return held
"""
        ),
        Example(
            """
def rename(held, environ, target_name, other):
    environ[other] = environ[target_name]
    return held
"""
        ),
    )


def _decided(facts: Facts, parts: Iterable[cst.CSTNode], path: frozenset[str]) -> bool:
    """Whether what the walk decided is behind some expressions."""
    return bool(facts.behind(parts, None) & path)


def _is_cache(facts: Facts, base: frozenset[str], caches: frozenset[str]) -> bool:
    """Whether what is written to is the KV cache, or a layer or a part of it."""
    made = [bind.value for name in base for bind in facts.bindings(name)]
    return bool(base & caches or facts.behind(made, None) & caches)


def _given_cache(facts: Facts, call: cst.Call, caches: frozenset[str]) -> bool:
    return any(
        isinstance(argument.value, cst.Name | cst.Attribute)
        and _is_cache(facts, names(argument.value), caches)
        for argument in call.args
    )


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


def _reissues(facts: Facts, call: cst.Call, path: frozenset[str]) -> bool:
    """`update(layer, key[path], value[path], cache, slots)`, which makes no object."""
    called = (dotted(call.func) or "").rpartition(".")[2]
    gathered = [
        part
        for argument in call.args
        for load in loads(argument.value)
        if load.node is argument.value and _decided(facts, load.index_nodes, path)
        for part in load.index_nodes
        if not isinstance(part, cst.Slice) and names(part)
    ]
    twice = any(
        one.deep_equals(other) for place, one in enumerate(gathered) for other in gathered[:place]
    )
    return twice and len(call.args) >= 4 and not called[:1].isupper()
