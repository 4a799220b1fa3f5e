"""Nodes chosen by the probability of their whole path, each with a parent, are a drafted tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import names, walk
from ..shapes.facts import Facts
from ..shapes.frontier import grows_tree
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_HEAP = frozenset({"heappop", "heappushpop", "heapreplace", "nlargest", "nsmallest"})
_PLACE = frozenset({"argmax", "argmin", "argpartition", "argsort"})
_SORTED = frozenset({"sort", "sorted", "insort", "insort_left", "insort_right"})
# A frontier in arrays has costs and parents at the least, and the nodes are kept in others.
_FEWEST_ARRAYS = 3
_RANKING = frozenset({"topk", "sort", "argsort"})


class BestFirstDrafting(Rule):
    """Candidates of all nodes are ranked together, and each chosen one keeps who its parent is.

    Either the best of a frontier of partial paths (a heap, a sorted list, or arrays of which the
    best place is looked up), whose children enter with its number; or a top-k over parents times
    candidates whose result is split into parent and candidate.
    """

    stage = Stage.DRAFTING
    supports = StageVerdict.TREE
    scope = Scope.DRAFTING

    def gate(self, outline: Outline) -> bool:
        if {ast.FloorDiv, ast.Mod} <= outline.operators and _RANKING & outline.called:
            return True
        called = outline.looped_calls
        if _HEAP & called or (_PLACE & called and len(outline.stored) > _FEWEST_ARRAYS):
            return True
        kept = "pop" in called and _SORTED & outline.called
        return bool(kept or ({"min", "max"} & called and {"remove", "pop"} & called))

    def find(self, view: FunctionView) -> Iterator[Finding]:
        found = _split(view.facts) or grows_tree(view.facts, view.tree)
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
        heapq.heappush(heap, (weight - logp[depth][rank + 1], depth, rank + 1, parent))
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
    """The binding of a ranked index that is split by one width into parents and candidates."""
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
    """Whether a ranked index is divided, and it, or the rest, looks up candidates."""
    whole, rest = frozenset[str](), frozenset[str]()
    values = [*(bind.value for bind in facts.binds), *facts.returns]
    for value in values:
        for node in walk(value):
            if isinstance(node, cst.BinaryOperation) and names(node.left) & ranked:
                if m.matches(node.operator, m.FloorDivide()):
                    whole |= names(node.right)
                elif m.matches(node.operator, m.Modulo()):
                    rest |= names(node.right)
    if not whole & rest:
        return False
    rests = frozenset(
        name
        for bind in facts.binds
        if m.findall(bind.value, m.BinaryOperation(operator=m.Modulo()))
        and names(bind.value) & ranked
        for name in bind.targets
    )
    return any(load.index & (ranked | rests) for value in values for load in facts.loads(value))
