"""Positions counted up row by row leave no room for two siblings at one depth."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import names, walk
from ..shapes.facts import Facts, Store
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_POSITION = "pos"
_ADDED = m.BinaryOperation(operator=m.Add())
_NUMPY_ADD = m.Call(func=m.Attribute(value=m.Name("np") | m.Name("numpy"), attr=m.Name("add")))


class SequentialPositions(Rule):
    """The position of a row is the number of computed tokens plus the row's place in its request.

    Rows of one request then lie at consecutive positions, drafts included, and a causal mask lets
    each see all rows in front of it: the draft rows are one chain.
    """

    stage = Stage.ATTENTION
    supports = StageVerdict.LINEAR
    scope = Scope.FORWARD

    def gate(self, outline: Outline) -> bool:
        placed = {"arange", "add", "copy_to_gpu", "store"} & outline.called
        return bool(placed) and any(name.startswith(_POSITION) for name in outline.stored)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for store in facts.stores:
            if _is_position(store.base) and _sum(facts, store):
                yield self.at(view, store.node, _MESSAGE)
                return
        for site in facts.calls:
            if m.matches(site.node, _NUMPY_ADD) and _into_positions(facts, site.node):
                yield self.at(view, site.node, _MESSAGE)
                return

    FOUND = (
        Example(
            """
def prepare(self, requests, total):
    place = self.place_in_request.gpu[:total]
    self.place_in_request.copy_to_gpu(total)
    self.positions[:total] = self.computed[requests] + place
"""
        ),
        Example(
            """
def prepare(self, computed, requests, arange, total):
    positions_np = self.positions_np[:total]
    np.add(computed[requests], arange, out=positions_np)
"""
        ),
        Example(
            """
def kernel(pos_ptr, computed_ptr, start_ptr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    computed = tl.load(computed_ptr + r)
    start = tl.load(start_ptr + r)
    length = tl.load(start_ptr + r + 1) - start
    for i in range(0, length, BLOCK):
        place = i + tl.arange(0, BLOCK)
        tl.store(pos_ptr + start + place, computed + place, mask=place < length)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def prepare(self, root, depth, total):
    self.positions[:total] = root + depth[:total]
    return torch.arange(total)
"""
        ),
        Example(
            """
def lengths(self, computed, requests, arange, out):
    np.add(computed[requests], arange, out=out)
"""
        ),
        Example(
            """
def clear(self, total):
    self.positions[total:] = 0
    return torch.arange(total)
"""
        ),
    )


_MESSAGE = (
    "positions are the computed tokens plus the row's place: draft rows lie one behind the other, "
    "so no two can be siblings"
)


def _is_position(base: frozenset[str]) -> bool:
    return any(name.rpartition(".")[2].startswith(_POSITION) for name in base)


def _sum(facts: Facts, store: Store) -> bool:
    if store.value is None:
        return False
    loop = store.loops[-1] if store.loops else None
    for part in facts.expand(store.value, loop):
        for node in walk(part):
            if m.matches(node, _ADDED):
                added = cst.ensure_type(node, cst.BinaryOperation)
                if _computed_plus_place(facts, added.left, added.right):
                    return True
    return False


def _into_positions(facts: Facts, node: cst.CSTNode) -> bool:
    call = cst.ensure_type(node, cst.Call)
    plain = [argument.value for argument in call.args if argument.keyword is None]
    out = [argument.value for argument in call.args if argument.keyword is not None]
    return (
        len(plain) == 2
        and any(_is_position(names(value)) for value in out)
        and _computed_plus_place(facts, plain[0], plain[1])
    )


def _computed_plus_place(facts: Facts, left: cst.CSTNode, right: cst.CSTNode) -> bool:
    """One summand is looked up per request, the other is the place of the row."""
    looked_up = any(True for _ in facts.reads(left, None))
    return looked_up and _is_place(facts, right)


def _is_place(facts: Facts, node: cst.CSTNode) -> bool:
    """A range, or a buffer that this function fills on the host and copies over as it is."""
    for part in facts.expand(node, None):
        if any(name.rpartition(".")[2] == "arange" for name in names(part)):
            return True
        for inner in walk(part):
            if m.matches(inner, m.Call(func=m.Attribute(attr=m.Name("arange")))):
                return True
    copied = {
        ".".join(name.split(".")[:2])
        for site in facts.calls
        if m.matches(site.node, m.Call(func=m.Attribute(attr=m.Name("copy_to_gpu"))))
        for name in names(cst.ensure_type(cst.ensure_type(site.node, cst.Call).func, cst.Attribute))
    }
    read = {".".join(name.split(".")[:2]) for load in facts.reads(node, None) for name in load.base}
    return bool(copied & read)
