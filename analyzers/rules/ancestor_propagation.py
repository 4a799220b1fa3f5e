"""Acceptance handed down from parents to children, for all nodes at once, is a tree walk."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import Load, names, walk
from ..shapes.facts import Facts, Loop
from ..shapes.matches import matches_at
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_COMBINING = frozenset({"logical_and", "bitwise_and", "minimum", "where", "mul", "multiply"})
_AND = (
    m.BinaryOperation(operator=m.BitAnd() | m.Multiply())
    | m.BooleanOperation(operator=m.And())
    | m.Call(func=m.Attribute(attr=m.Name(m.MatchIfTrue(_COMBINING.__contains__))))
)
_AND_INTO = m.AugAssign(operator=m.BitAndAssign() | m.MultiplyAssign())
_RANGE = m.Call(func=m.Attribute(attr=m.Name("arange") | m.Name("program_id")))


class AncestorPropagation(Rule):
    """A node is accepted when its parent is and its token is what the target said at the parent.

    Acceptance is an array over nodes that a loop reads through an array of parents (one level per
    round, or by pointer doubling), while the drafted tokens are compared with the target's tokens
    gathered at the parents.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS
    in_loops = True

    def gate(self, outline: Outline) -> bool:
        gathers = {"gather", "take_along_dim", "index_select"} & outline.called
        reads = ast.Subscript in outline.looped or bool(gathers)
        combined = {ast.BitAnd, ast.And, ast.Mult} & outline.operators
        return outline.rereading and reads and bool(combined or _COMBINING & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            for step in _steps(facts, loop):
                if step.link and _follows_matches(facts, step, view):
                    yield self.at(
                        view,
                        loop.node,
                        f"acceptance is handed down through `{min(step.link)}`, and drafted tokens "
                        "are compared with the target's token at the parent: any root-to-node path "
                        "can be accepted",
                        step.accepted,
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
        Example(
            """
def survive(parents, held_hits, target_ids, rounds):
    jump = parents.clamp(min=0)
    for _ in range(rounds):
        held_hits = held_hits & torch.gather(held_hits, 1, jump)
        jump = torch.gather(jump, 1, jump)
    return held_hits, target_ids
"""
        ),
        Example(
            """
def accept(tokens, parents, target_ids, n):
    alive = [False] * n
    alive[0] = True
    for j in range(1, n):
        above = parents[j]
        if alive[above] and tokens[j] == target_ids[above]:
            alive[j] = True
    return alive
"""
        ),
        Example(
            """
def accept(tokens, parents, target_ids, depth):
    ok = tokens.eq(torch.gather(target_ids, 1, parents)).int()
    for _ in range(depth):
        ok *= ok.gather(1, parents)
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
        Example(
            """
def files(graphs, target_logits, keys, method):
    last = None
    for step in range(4):
        size = keys[step]
        last = target_logits[size]
        graphs[size] = graphs.get(size) and graphs[keys[size]]
        if last is not None and method == "draft_model":
            break
    return graphs, last
"""
        ),
        Example(
            """
def reachable(parents, target_ids, limit, depth):
    near = target_ids.gather(1, parents) >= limit
    for _ in range(depth):
        near = near & near.gather(1, parents)
    return near
"""
        ),
        Example(
            """
def beside(tokens, parents, target_ids, alive, depth):
    for _ in range(depth):
        alive = alive & alive.gather(1, parents)
    return alive, tokens == target_ids.gather(1, parents)
"""
        ),
        Example(
            """
def stops(parents, target_ids, alive, stop_ids, depth):
    for _ in range(depth):
        alive = alive & alive.gather(1, parents)
        ended = stop_ids == target_ids[:, :1]
    return alive, ended
"""
        ),
        Example(
            """
def masked(parents, target_mask, rounds):
    jump = parents
    for _ in range(rounds):
        target_mask = target_mask & target_mask.gather(1, jump)
        jump = jump.gather(1, jump)
    return target_mask
"""
        ),
        Example(
            """
def either(tokens, parents, target_ids, depth):
    seen = tokens == target_ids.gather(1, parents)
    for _ in range(depth):
        seen = seen | seen.gather(1, parents)
    return seen
"""
        ),
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """What one round does: `accepted` is read through `link` and combined with `parts`."""

    link: frozenset[str]
    accepted: frozenset[str]
    parts: tuple[cst.CSTNode, ...]


def _steps(facts: Facts, loop: Loop) -> Iterator[_Step]:
    """The arrays that a round reads through an array of parents and combines, by and, with others.

    Either all at once, `ok = ok & ok[parents]`, or node by node, `ok[j] = ok[parents[j]] and hit`
    or `if ok[parents[j]] and hit: ok[j] = True`.
    """
    carried = facts.carried(loop)
    for bind in facts.inside(loop):
        if m.matches(bind.node, _AND_INTO) or _combines(bind.value):
            for load in facts.value_reads(bind.value, loop, stop=carried):
                if bind.targets & carried & load.base:
                    parts = facts.expand(bind.value, None)
                    yield _Step(_link(facts, loop, load), bind.targets, tuple(parts))
    for store in facts.stores:
        if loop not in store.loops or store.value is None:
            continue
        made = [one.value for name in store.base for one in facts.bindings(name)]
        for value in (store.value, *store.guards):
            if _combines(value) or m.matches(store.node, _AND_INTO):
                for load in facts.reads(value, loop):
                    if load.base & store.base:
                        parts = [*facts.expand(value, None), *made]
                        yield _Step(_link(facts, loop, load), store.base, tuple(parts))


def _combines(value: cst.CSTNode) -> bool:
    return any(
        m.matches(node, _AND)
        for node in walk(value)
        if isinstance(node, cst.BinaryOperation | cst.BooleanOperation | cst.Call)
    )


def _link(facts: Facts, loop: Loop, load: Load) -> frozenset[str]:
    """The array by which a load is indexed; places that are counted or sliced are no links."""
    found: set[str] = set()
    for part in load.index_nodes:
        if isinstance(part, cst.Slice):
            continue
        inner = [base for deeper in facts.reads(part, loop) for base in deeper.base]
        found.update(inner or (names(part) if not _is_counted(facts, loop, part) else ()))
    return frozenset(name for name in found if not name.startswith("."))


def _is_counted(facts: Facts, loop: Loop, part: cst.CSTNode) -> bool:
    """Whether an index is made of the loop's counter or of a range."""
    return any(
        names(expression) & loop.index or any(m.matches(node, _RANGE) for node in walk(expression))
        for expression in facts.expand(part, None)
    )


def _follows_matches(facts: Facts, step: _Step, view: FunctionView) -> bool:
    """Whether what is handed down is where drafted tokens are the target's at their parents.

    Matches that were handed in need no comparison here.
    """
    known = _sources(facts, step.link)
    for part in step.parts:
        for node in walk(part):
            for load in matches_at(facts, node, view.logits):
                index = load.index | _sources(facts, load.index)
                if index & known:
                    return True
    read = frozenset(name for part in step.parts for name in names(part))
    return bool(read & view.held())


def _sources(facts: Facts, link: frozenset[str]) -> frozenset[str]:
    """The link and what it was first made of: `jump` starts as `parents`."""
    found = set(link)
    for bind in facts.binds:
        if bind.targets & link:
            found |= names(bind.value)
    return frozenset(found)
