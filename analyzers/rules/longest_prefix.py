"""The last position that passes a test is the length of an accepted prefix."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import is_constant, loads, names
from ..shapes.facts import Bind, Facts, Loop
from ..shapes.view import FunctionView
from ..shapes.walks import pointer_walk
from .rule import Example, Finding, Rule, Scope


class LongestPrefix(Rule):
    """A loop over consecutive positions remembers how far drafts hold, and that much is kept.

    Block verification (Sun et al. 2024): the joint ratio of the prefix is compared with a coin at
    every position, and the last position that passes bounds what is emitted. There is no early
    stop, and still only a prefix of one chain can be accepted.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.LINEAR
    scope = Scope.LOGITS
    in_loops = True

    def gate(self, outline: Outline) -> bool:
        ordered = {ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq} & outline.looped
        return outline.bounding and bool(ordered)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            if not loop.counts or pointer_walk(facts, loop, view.logits) is not None:
                continue
            for bind in facts.inside(loop):
                length = _length(facts, loop, bind)
                if length and _bounds_output(facts, loop, bind, length, view.logits):
                    yield self.at(
                        view,
                        loop.node,
                        f"`{length}` is the last consecutive position that passes, and bounds what "
                        "is kept: only a prefix of one chain can be accepted",
                    )

    FOUND = (
        Example(
            """
def kernel(out_ptr, ratio_ptr, coin_ptr, target_ptr, width):
    joint = 1.0
    kept = 0
    for i in range(width):
        joint = tl.minimum(joint * tl.load(ratio_ptr + i), 1.0)
        if tl.load(coin_ptr + i) <= joint:
            kept = i + 1
    for i in range(kept):
        tl.store(out_ptr + i, tl.load(target_ptr + i))
"""
        ),
        Example(
            """
def kernel(out_ptr, token_ptr, target_ptr, coin_ptr, width):
    kept = 0
    joint = 1.0
    for i in range(width):
        joint = joint * tl.load(target_ptr + i)
        if tl.load(coin_ptr + i) <= joint:
            kept = i + 1
    for i in range(kept):
        tl.store(out_ptr + i, tl.load(token_ptr + i))
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def best(scores, target_ids, n):
    top = 0
    for i in range(n):
        if scores[i] > scores[top]:
            top = i
    return target_ids[top]
"""
        ),
        Example(
            """
def kernel(out_ptr, parent_ptr, token_ptr, target_ptr, n):
    at = 0
    for i in range(1, n):
        if (tl.load(parent_ptr + i) == at) & (tl.load(token_ptr + i) == tl.load(target_ptr + at)):
            at = i
    for i in range(at):
        tl.store(out_ptr + i, tl.load(target_ptr + i))
"""
        ),
        Example(
            """
def copy(out, widths, target_ids, n):
    used = 0
    for i in range(n):
        if widths > 0:
            used = i + 1
    for i in range(used):
        out[i] = target_ids[i]
"""
        ),
    )


def _length(facts: Facts, loop: Loop, bind: Bind) -> str | None:
    """The name that takes over the position under a test that reads at the position."""
    carried = bind.targets & facts.carried(loop)
    place = m.matches(bind.value, m.BinaryOperation(operator=m.Add()) | m.Name())
    if not carried or not place or not names(bind.value) & loop.index or loads(bind.value):
        return None
    tested = any(
        _reads_at(facts, loop, guard) and not names(guard) & bind.targets
        for guard in bind.guards
        if not is_constant(guard)
    )
    return min(carried) if tested else None


def _reads_at(facts: Facts, loop: Loop, guard: cst.BaseExpression) -> bool:
    return any(
        facts.behind(load.index_nodes, loop) & loop.index for load in facts.reads(guard, loop)
    )


def _bounds_output(
    facts: Facts, loop: Loop, bind: Bind, length: str, logits: frozenset[str]
) -> bool:
    """Whether a later loop over that length writes, and the target had a say in it."""
    decided = bool(facts.behind(bind.guards, loop) & logits)
    for other in facts.loops:
        if other is loop or not other.counts or other.source is None:
            continue
        if length not in names(other.source):
            continue
        for store in facts.stores:
            if other not in store.loops or store.value is None:
                continue
            if decided or facts.behind([store.value], other) & logits:
                return True
    return False
