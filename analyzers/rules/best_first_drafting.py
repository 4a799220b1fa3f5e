"""Nodes chosen by the probability of their whole path, each with a parent, are a drafted tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import names, walk
from ..shapes.facts import Facts, Loop
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_RANKING = frozenset({"topk", "sort", "argsort"})


class BestFirstDrafting(Rule):
    """Candidates of all nodes are ranked together, and each chosen one keeps who its parent is.

    Either a heap of partial paths, or a top-k over parents times candidates whose result is split
    into parent and candidate by division and remainder.
    """

    stage = Stage.DRAFTING
    supports = StageVerdict.TREE
    scope = Scope.DRAFTING

    def gate(self, outline: Outline) -> bool:
        if "heappush" in outline.called and "heappop" in outline.called:
            return outline.loops > 0
        split = {ast.FloorDiv, ast.Mod} <= outline.operators
        return split and bool(_RANKING & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        found = _split(facts) or _heap(facts, _pushers(view.tree))
        if found is not None:
            yield self.at(
                view,
                found,
                "candidates of several nodes are ranked together and each keeps its parent: "
                "a tree is drafted",
            )

    FOUND = (
        Example(
            """
def build(scores, ids, k, n):
    best = scores.flatten(1).topk(n).indices
    parents = best // k
    tokens = ids.gather(1, best % k)
    return tokens, parents
"""
        ),
        Example(
            """
def build(logp, ids, n):
    heap = [(-logp[0][0], 0, 0, 0)]
    tokens, parents = [], []
    while heap and len(tokens) < n:
        weight, depth, rank, parent = heapq.heappop(heap)
        tokens.append(ids[depth][rank])
        parents.append(parent)
        heapq.heappush(heap, (weight - logp[depth + 1][0], depth + 1, 0, len(tokens)))
    return tokens, parents
"""
        ),
        Example(
            """
def build(costs, n):
    tree, heap = [], []

    def push(depth, parent, rank):
        if depth < len(costs):
            heapq.heappush(heap, (costs[depth][rank], depth, parent, rank))

    push(0, 0, 0)
    while heap and len(tree) < n:
        cost, depth, parent, rank = heapq.heappop(heap)
        tree.append((depth, parent))
        push(depth, parent, rank + 1)
        push(depth + 1, len(tree), 0)
    return tree
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def top(logits, k):
    values, ids = logits.topk(k)
    return values, ids
"""
        ),
        Example(
            """
def pages(order, size):
    ranked = order.argsort()
    return ranked // size
"""
        ),
        Example(
            """
def split(scores, k, pages):
    best = scores.topk(k).indices
    return best // pages, best % k
"""
        ),
        Example(
            """
def merge(streams):
    heap, out = list(streams), []
    while heap:
        item = heapq.heappop(heap)
        out.append(item)
        heapq.heappush(heap, item + 1)
    return out
"""
        ),
        Example(
            """
def run(queue, budget):
    done, late = [], []
    while queue and len(done) < budget:
        due, task = heapq.heappop(queue)
        done.append(task)
        late.append(due)
        heapq.heappush(queue, (due + task.period, task))
    return done, late
"""
        ),
        Example(
            """
def schedule(queue):
    item = heapq.heappop(queue)
    return item
"""
        ),
    )


def _split(facts: Facts) -> cst.CSTNode | None:
    """The binding of a ranked index that is divided and reduced by the same width."""
    for bind in facts.binds:
        ranked = any(
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value in _RANKING
            for node in walk(bind.value)
        )
        if ranked and _divided(facts, bind.targets):
            return bind.node
    return None


def _divided(facts: Facts, ranked: frozenset[str]) -> bool:
    divisors: dict[str, set[str]] = {"whole": set(), "rest": set()}
    for value in [*(bind.value for bind in facts.binds), *facts.returns]:
        for node in walk(value):
            if not isinstance(node, cst.BinaryOperation) or not names(node.left) & ranked:
                continue
            if m.matches(node.operator, m.FloorDivide()):
                divisors["whole"] |= names(node.right)
            elif m.matches(node.operator, m.Modulo()):
                divisors["rest"] |= names(node.right)
    return bool(divisors["whole"] & divisors["rest"])


def _heap(facts: Facts, pushers: frozenset[str]) -> cst.CSTNode | None:
    """The loop that pops a partial path, keeps its parent and pushes longer ones."""
    called = {
        (site.loops[-1], call.func.attr.value if isinstance(call.func, cst.Attribute) else ""): site
        for site in facts.calls
        if site.loops and isinstance(call := site.node, cst.Call)
    }
    for loop in facts.loops:
        if (loop, "heappop") not in called:
            continue
        kept = [store for store in facts.stores if loop in store.loops and not store.index_nodes]
        pairs = any(isinstance(store.value, cst.Tuple) for store in kept)
        if len(kept) < 2 and not pairs:
            continue
        holders = frozenset(name for store in kept for name in store.base)
        if any(_numbers_node(facts, loop, push, holders) for push in _pushes(facts, loop, pushers)):
            return loop.node
    return None


def _pushes(facts: Facts, loop: Loop, pushers: frozenset[str]) -> Iterator[cst.CSTNode]:
    """The calls in a loop that push onto the heap, by way of a function inside as well."""
    for site in facts.calls:
        if loop in site.loops and isinstance(site.node, cst.Call):
            function = site.node.func
            own = isinstance(function, cst.Name) and function.value in pushers
            if own or m.matches(function, m.Attribute(attr=m.Name("heappush"))):
                yield site.node


def _pushers(function: cst.FunctionDef) -> frozenset[str]:
    """The functions inside a function that push onto a heap."""
    push = m.Call(func=m.Attribute(attr=m.Name("heappush")))
    return frozenset(
        node.name.value
        for node in walk(function.body)
        if isinstance(node, cst.FunctionDef) and m.findall(node, push)
    )


def _numbers_node(facts: Facts, loop: Loop, push: cst.CSTNode, kept: frozenset[str]) -> bool:
    """Whether a pushed path carries the number of the node just kept: its children's parent."""
    lengths = m.findall(push, m.Call(func=m.Name("len")))
    measured = any(names(length) & kept for length in lengths)
    return measured or bool(names(push) & facts.counted(loop))
