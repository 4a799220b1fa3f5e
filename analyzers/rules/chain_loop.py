"""A loop over consecutive draft positions that stops at the first mismatch is a chain."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import loads, names, walk
from ..shapes.facts import Facts, Loop, Site, compares_values, comparison_sides
from ..shapes.view import FunctionView
from ..shapes.walks import pointer_walk
from .rule import Example, Finding, Rule, Scope

_ORDER = m.Comparison(
    comparisons=[
        m.ComparisonTarget(
            operator=m.LessThan() | m.LessThanEqual() | m.GreaterThan() | m.GreaterThanEqual()
        )
    ]
)


class ChainLoop(Rule):
    """A loop over consecutive draft positions accepts tokens until the first mismatch.

    The loop's counter indexes both the drafted tokens and what the target made of them; a flag or
    a `break` ends acceptance for all later positions. Only prefixes of one chain can be accepted.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.LINEAR
    scope = Scope.LOGITS
    in_loops = True

    def gate(self, outline: Outline) -> bool:
        return ast.Compare in outline.looped and outline.leaves

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            if pointer_walk(facts, loop, view.logits) is not None:
                continue
            counters = _counters(facts, loop)
            tests = [
                site
                for site in facts.compares
                if loop in site.loops and _compares_streams(facts, loop, site, counters, view)
            ]
            stop = _stop(facts, loop, tests)
            if tests and stop and _emits(facts, loop, counters):
                yield self.at(view, loop.node, _message(counters, stop))

    FOUND = (
        Example(
            """
def kernel(out_ptr, start_ptr, draft_ptr, target_ptr, width):
    row = tl.program_id(0)
    first = tl.load(start_ptr + row)
    count = tl.load(start_ptr + row + 1) - first
    stopped = False
    for place in range(count):
        if not stopped:
            drafted = tl.load(draft_ptr + first + place)
            wanted = tl.load(target_ptr + first + place)
            tl.store(out_ptr + row * width + place, wanted)
            stopped = drafted != wanted
"""
        ),
        Example(
            """
def kernel(out_ptr, draft_ptr, target_ptr, coin_ptr, count, vocabulary):
    going = True
    for i in range(count):
        at = i
        if going:
            drafted = tl.load(draft_ptr + at + 1)
            p = tl.load(target_ptr + at * vocabulary + drafted)
            coin = tl.load(coin_ptr + at)
            if p >= coin:
                token = drafted
            else:
                token = -1
                going = False
            tl.store(out_ptr + i, token)
"""
        ),
        Example(
            """
def accept(drafts, target_ids):
    kept = []
    for drafted, wanted in zip(drafts, target_ids):
        kept.append(wanted)
        if drafted != wanted:
            break
    return kept
"""
        ),
        Example(
            """
def accept(drafts, target_ids):
    n = 0
    while n < len(drafts) and drafts[n] == target_ids[n]:
        n += 1
    return n
"""
        ),
        Example(
            """
def kernel(out_ptr, draft_ptr, target_ptr, rate_ptr, coin_ptr, count):
    stopped = False
    for i in range(count):
        if not stopped:
            if tl.load(coin_ptr + i) < tl.load(rate_ptr + i):
                token = tl.load(draft_ptr + i)
            else:
                token = tl.load(target_ptr + i)
                stopped = True
            tl.store(out_ptr + i, token)
"""
        ),
        Example(
            """
def kernel(out_ptr, draft_ptr, target_ptr, seed, rate, decay, count):
    stopped = False
    for i in range(count):
        if not stopped:
            coin = tl.rand(seed, i)
            if coin < rate:
                token = tl.load(draft_ptr + i)
            else:
                token = tl.load(target_ptr + i)
                stopped = True
            tl.store(out_ptr + i, token)
            rate *= decay
"""
        ),
        Example(
            """
def accept(drafts, out, target_ids, row):
    node = 0
    while node + 1 < len(drafts) and drafts[node + 1] == target_ids[row, node]:
        child = node + 1
        out[row, child] = target_ids[row, child]
        node = child
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def linked(token_ptr, link_ptr, target_ptr, out_ptr, count):
    at = 0
    for node in range(1, count):
        link = tl.load(link_ptr + node)
        token = tl.load(token_ptr + node)
        if (link == at) & (token == link):
            at = node
            tl.store(out_ptr + node, tl.load(target_ptr + node))
"""
        ),
        Example(
            """
def anneal(coins, target_ids, out, count):
    heat = 1.0
    for i in range(count):
        if coins[i] < heat:
            out.append(target_ids[i])
        heat *= 0.9
    return out
"""
        ),
        Example(
            """
def repeated(target_ids, size, out):
    longest = 0
    for i in range(1, size):
        while longest and target_ids[longest] != target_ids[i]:
            longest = out[longest - 1]
        if target_ids[longest] == target_ids[i]:
            longest += 1
        out[i] = longest
"""
        ),
        Example(
            """
def count(mask_ptr, target_ptr, size, block):
    total = 0
    for i in range(size):
        total += tl.load(mask_ptr + i) == tl.load(target_ptr + i)
    return total
"""
        ),
        Example(
            """
def walk(tokens, child, target_ids):
    node = 0
    path = []
    while child[node] >= 0:
        node = child[node]
        if tokens[node] != target_ids[node]:
            break
        path.append(node)
    return path
"""
        ),
        Example(
            """
def walk(parents, tokens, target_ids):
    for row in range(len(tokens)):
        for _ in range(4):
            if tokens[row] != target_ids[row]:
                break
            parents.append(row)
    return parents
"""
        ),
        Example(
            """
def borders(target_ids, n):
    length = 0
    for i in range(1, n):
        if target_ids[i] != target_ids[n - i]:
            break
        length += 1
    return length
"""
        ),
        Example(
            """
def copy(drafts, limit, target_ids):
    out = []
    for i in range(limit):
        if i >= len(drafts):
            break
        out.append(target_ids[i])
    return out
"""
        ),
        Example(
            """
def prefix(a, b, target_ids):
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return target_ids[:n]
"""
        ),
    )


def _counters(facts: Facts, loop: Loop) -> frozenset[str]:
    """The names that hold the position: the loop's index, or what it only counts up."""
    if isinstance(loop.node, cst.For):
        return loop.index
    return facts.counted(loop) & _behind_tests(facts, loop)


def _behind_tests(facts: Facts, loop: Loop) -> frozenset[str]:
    tests = [site.node for site in [*facts.compares, *facts.conditions] if loop in site.loops]
    return facts.behind(tests, loop)


def _compares_streams(
    facts: Facts, loop: Loop, site: Site, counters: frozenset[str], view: FunctionView
) -> bool:
    sides = comparison_sides(site.node)
    streams = [side for side in sides if _is_stream(facts, loop, side, counters)]
    steady = [side for side in sides if side not in streams]
    if len(sides) < 2 or not streams or not all(_is_pace(facts, loop, site, s) for s in steady):
        return False
    if _same_array(facts, loop, sides):
        return False
    if facts.behind(sides, loop) & view.logits:
        return True
    # Synthetic acceptance: a coin decides whether the target's token ends the draft.
    return not compares_values(site.node) and any(
        any(node is site.node for guard in bind.guards for node in walk(guard))
        and facts.behind([bind.value], loop) & view.logits
        for bind in facts.inside(loop)
    )


def _is_pace(facts: Facts, loop: Loop, site: Site, side: cst.BaseExpression) -> bool:
    """Whether a coin is held against a rate that is carried along and changed in every round."""
    if not m.matches(site.node, _ORDER) or not isinstance(side, cst.Name):
        return False
    carried = facts.carried(loop) - facts.counted(loop)
    return side.value in carried and any(
        bind.augmented and loop is bind.loops[-1] for bind in facts.bindings(side.value)
    )


def _same_array(facts: Facts, loop: Loop, sides: list[cst.BaseExpression]) -> bool:
    """Whether both sides are read from one array: a search for repetitions, not a verification."""
    ends = (sides[0], sides[-1])
    arrays = [end.value for end in ends if isinstance(end, cst.Subscript)]
    if len(arrays) == len(ends) and arrays[0].deep_equals(arrays[1]):
        # Whatever the places were read from.
        return True
    first, last = (
        frozenset(name for load in facts.reads(side, loop) for name in load.base) for side in ends
    )
    return bool(first) and first == last


def _is_stream(
    facts: Facts, loop: Loop, side: cst.BaseExpression, counters: frozenset[str]
) -> bool:
    """Whether a value is read at the loop's position."""
    for part in facts.expand(side, loop):
        if not loop.counts and names(part) & loop.index and not _only_counts(loop, part):
            return True
        for load in loads(part):
            if facts.behind(load.index_nodes, loop) & counters:
                return True
        for node in walk(part):
            if isinstance(node, cst.Call):
                arguments = [argument.value for argument in node.args]
                if any(isinstance(a, cst.Name) for a in arguments) and (
                    facts.behind(arguments, loop) & counters
                ):
                    return True
    return False


def _only_counts(loop: Loop, part: cst.CSTNode) -> bool:
    # In `for i, x in enumerate(xs)`, `i` alone is a number, not an element.
    if loop.source is None or not m.matches(loop.source, m.Call(func=m.Name("enumerate"))):
        return False
    target = cst.ensure_type(loop.node, cst.For).target
    first = target.elements[0].value if isinstance(target, cst.Tuple) else target
    return names(part) & loop.index <= names(first)


def _stop(facts: Facts, loop: Loop, tests: list[Site]) -> str | None:
    """What ends acceptance: the flag's name, or the statement that leaves the loop."""
    if not tests:
        return None
    compared = {id(site.node) for site in tests}
    condition = loop.source if isinstance(loop.node, cst.While) else None
    if condition is not None and _contains(facts, loop, condition, compared):
        return "the loop's own condition"
    for site in facts.exits:
        leaves = loop in site.loops and (
            isinstance(site.node, cst.Return) or site.loops[-1] is loop
        )
        if leaves and any(
            _contains(facts, loop, guard, compared) for guard in _inner(facts, loop, site)
        ):
            return "`break`" if isinstance(site.node, cst.Break) else "`return`"
    guards = frozenset(
        name for site in facts.conditions if loop in site.loops for name in names(site.node)
    )
    for bind in facts.inside(loop):
        flags = bind.targets & facts.carried(loop) & guards
        deciding = [bind.value, *bind.guards]
        if flags and any(_contains(facts, loop, part, compared) for part in deciding):
            return f"the flag `{min(flags)}`"
    return None


def _inner(facts: Facts, loop: Loop, site: Site) -> list[cst.BaseExpression]:
    own = {id(condition.node) for condition in facts.conditions if loop in condition.loops}
    return [guard for guard in site.guards if id(guard) in own]


def _contains(facts: Facts, loop: Loop, part: cst.CSTNode, compared: set[int]) -> bool:
    return any(
        id(node) in compared for expression in facts.expand(part, loop) for node in walk(expression)
    )


def _emits(facts: Facts, loop: Loop, counters: frozenset[str]) -> bool:
    """Whether the loop writes its result per position, or counts how far it came."""
    for store in facts.stores:
        if loop in store.loops and (
            not store.index_nodes or facts.behind(store.index_nodes, loop) & counters
        ):
            return True
    return bool(facts.counted(loop))


def _message(counters: frozenset[str], stop: str) -> str:
    position = ", ".join(f"`{name}`" for name in sorted(counters))
    return (
        f"compares draft and target at consecutive positions {position} and lets {stop} end "
        "acceptance at the first mismatch: only a prefix of one chain can be accepted"
    )
