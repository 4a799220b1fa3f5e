"""Acceptance handed down from parents to children, for all nodes at once, is a tree walk."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import Load, loads, names, walk
from ..shapes.facts import Facts, Loop, comparison_sides, is_equality
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_AND = m.BinaryOperation(operator=m.BitAnd()) | m.Call(
    func=m.Attribute(attr=m.Name("logical_and") | m.Name("bitwise_and"))
)
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
        tests = {ast.Eq, ast.NotEq, ast.BitAnd} & outline.operators
        return outline.rereading and reads and bool(tests or "logical_and" in outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            for link, mask in _links(facts, loop):
                if link and (mask & view.logits or _compares_at(facts, link, view.logits)):
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
        Example(
            """
def survive(parents, target_hits, rounds):
    jump = parents.clamp(min=0)
    for _ in range(rounds):
        target_hits = target_hits & torch.gather(target_hits, 1, jump)
        jump = torch.gather(jump, 1, jump)
    return target_hits
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


def _links(facts: Facts, loop: Loop) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """The arrays of parents through which the loop reads what it writes, and what it ANDs there.

    Matches of drafted and target tokens that were handed in need no comparison here.
    """
    carried = facts.carried(loop)
    for bind in facts.inside(loop):
        for load in facts.value_reads(bind.value, loop, stop=carried):
            if bind.targets & carried & load.base:
                anded = bind.targets if m.findall(bind.value, _AND) else frozenset()
                yield _link(facts, loop, load), anded
    for store in facts.stores:
        if loop in store.loops and store.value is not None:
            for load in facts.reads(store.value, loop):
                if load.base & store.base:
                    yield _link(facts, loop, load), frozenset()


def _link(facts: Facts, loop: Loop, load: Load) -> frozenset[str]:
    """The array by which a load is indexed; places that are counted or sliced are no links."""
    found: set[str] = set()
    for part in load.index_nodes:
        if isinstance(part, cst.Slice):
            continue
        inner = [base for deeper in loads(part) for base in deeper.base]
        found.update(inner or (names(part) if not _is_counted(facts, loop, part) else ()))
    return frozenset(name for name in found if not name.startswith("."))


def _is_counted(facts: Facts, loop: Loop, part: cst.CSTNode) -> bool:
    """Whether an index is made of the loop's counter or of a range."""
    return any(
        names(expression) & loop.index or any(m.matches(node, _RANGE) for node in walk(expression))
        for expression in facts.expand(part, None)
    )


def _compares_at(facts: Facts, link: frozenset[str], logits: frozenset[str]) -> bool:
    known = _sources(facts, link)
    for site in facts.compares:
        if not is_equality(site.node):
            continue
        sides = comparison_sides(site.node)
        for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
            # One array compared with itself is a string search, not a verification.
            others = facts.behind([there], None)
            for load in facts.reads(here, None):
                if load.base & logits and load.index & known and not load.base & others:
                    return True
    return False


def _sources(facts: Facts, link: frozenset[str]) -> frozenset[str]:
    """The link and what it was first made of: `jump` starts as `parents`."""
    found = set(link)
    for bind in facts.binds:
        if bind.targets & link:
            found |= names(bind.value)
    return frozenset(found)
