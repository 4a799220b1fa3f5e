"""A loop that follows parent or child links over target tokens is a tree walk."""

from __future__ import annotations

from collections.abc import Iterator

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.facts import Facts, Loop
from ..shapes.view import FunctionView
from ..shapes.walks import pointer_walk
from .rule import Example, Finding, Rule, Scope


class PointerWalk(Rule):
    """Acceptance follows parent, child or sibling links over the target's tokens.

    The position of the walk is not counted up: it is loaded through itself (first child, next
    sibling, a child map) or selected as the node whose parent it is, and the target's token at
    that very position decides where it goes. Any root-to-node path can be accepted.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS
    in_loops = True

    def gate(self, outline: Outline) -> bool:
        return outline.moving or outline.recursive

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for loop in view.facts.rounds:
            walk = pointer_walk(view.facts, loop, view.logits, view.held)
            if walk is not None:
                yield self.at(
                    view,
                    loop.node,
                    f"{walk.how}, and the target's token there is compared with the drafted ones: "
                    "any root-to-node path can be accepted",
                    walk.pointers | _written(view.facts, loop),
                )
                return

    FOUND = (
        Example(
            """
def kernel(parent_ptr, token_ptr, target_ptr, path_ptr, count, BLOCK: tl.constexpr):
    nodes = tl.arange(0, BLOCK)
    parents = tl.load(parent_ptr + nodes, mask=nodes < count, other=-1)
    tokens = tl.load(token_ptr + nodes, mask=nodes < count, other=-1)
    at = 0
    steps = 0
    going = True
    while going:
        wanted = tl.load(target_ptr + at)
        hit = (parents == at) & (tokens == wanted)
        child = tl.min(tl.where(hit, nodes, BLOCK))
        going = child < BLOCK
        if going:
            at = child + 1
            tl.store(path_ptr + steps, at)
            steps += 1
"""
        ),
        Example(
            """
def walk(first_child, next_sibling, tokens, target_ids, out):
    last = 0
    node = first_child[0]
    while node != -1:
        if tokens[node] == target_ids[last]:
            out.append(node)
            last = node
            node = first_child[node]
        else:
            node = next_sibling[node]
    return last
"""
        ),
        Example(
            """
def walk(children, target_ids):
    node, path = 0, []
    while True:
        following = children[node].get(target_ids[node])
        if following is None:
            return path
        path.append(following)
        node = following
"""
        ),
        Example(
            """
def walk(root, target_ids):
    node = root
    path = []
    while node is not None:
        token = target_ids[node.row]
        path.append(token)
        node = node.children.get(token)
    return path
"""
        ),
        Example(
            """
def walk(parents, tokens, target_ids, depth):
    here = torch.zeros(parents.shape[0], dtype=torch.long)
    for _ in range(depth):
        wanted = target_ids.gather(1, here[:, None])
        hit = (parents == here[:, None]) & (tokens == wanted)
        found = hit.any(1)
        here = torch.where(found, hit.int().argmax(1) + 1, here)
    return here
"""
        ),
        Example(
            """
def walk(parents, tokens, target_ids, n):
    here = 0
    accepted = []
    for j in range(1, n):
        if parents[j] == here and tokens[j] == target_ids[here]:
            here = j
            accepted.append(j)
    return accepted
"""
        ),
        Example(
            """
def below(node, children, tokens, target_ids):
    for child in children[node]:
        if tokens[child] == target_ids[node]:
            return [child, *below(child, children, tokens, target_ids)]
    return []
"""
        ),
        Example(
            """
def scan(parent_ptr, token_ptr, target_ptr, out_ptr, count):
    at = 0
    wanted = tl.load(target_ptr)
    steps = 0
    for node in range(1, count):
        above = tl.load(parent_ptr + node)
        token = tl.load(token_ptr + node)
        if (above == at) & (token == wanted):
            at = node
            wanted = tl.load(target_ptr + node)
            tl.store(out_ptr + steps, wanted)
            steps += 1
"""
        ),
        Example(
            """
def descend(down, right, tokens, coins, target_probs):
    node = int(down[0])
    while node >= 0:
        token = int(tokens[node])
        if float(coins[node]) < float(target_probs[token]):
            return node
        node = int(right[node])
    return -1
"""
        ),
        Example(
            """
def path(children, target_ids):
    path = [0]
    while True:
        child = children[path[-1]].get(target_ids[path[-1]])
        if child is None:
            return path
        path.append(child)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def prefix(node, tokens, target_ids):
    if tokens[node] != target_ids[node]:
        return [node]
    return [node, *prefix(node + 1, tokens, target_ids)]
"""
        ),
        Example(
            """
def tree_verify(tree_parents, tokens, target_ids):
    out = []
    for i in range(len(tokens)):
        if tokens[i] != target_ids[i]:
            break
        out.append(tokens[i])
    return out
"""
        ),
        Example(
            """
def blocks(next_block, free, target_ids):
    block = free
    chain = []
    while block != -1:
        chain.append(block)
        block = next_block[block]
    return chain, target_ids
"""
        ),
        Example(
            """
def bookkeeping(block, target_ids):
    i = 0
    while block is not None and i < len(target_ids):
        if block.token_id == target_ids[i]:
            block.references += 1
        block = block.next
        i += 1
    return i
"""
        ),
        Example(
            """
def suffix(root, context, target_ids):
    node = root
    for token in context:
        node = node.children.get(token)
        if node is None:
            break
    return node, target_ids
"""
        ),
        Example(
            """
def chain(draft, target_ids):
    at = 0
    while at < len(draft) and draft[at] == target_ids[at]:
        at = at + 1
    return at
"""
        ),
        Example(
            """
def failure_links(target_ids, n):
    links = [0] * n
    k = 0
    for i in range(1, n):
        while k > 0 and target_ids[k] != target_ids[i]:
            k = links[k - 1]
        if target_ids[k] == target_ids[i]:
            k += 1
        links[i] = k
    return links
"""
        ),
        Example(
            """
def binary_search(bounds, target_ids, low, high):
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] < target_ids[0]:
            low = middle + 1
        else:
            high = middle
    return low
"""
        ),
        Example(
            """
def running_maximum(values, target_ids):
    best = values[0]
    for i in range(1, len(values)):
        best = max(best, values[i], target_ids[i])
    return best
"""
        ),
    )


def _written(facts: Facts, loop: Loop) -> frozenset[str]:
    """What a loop writes: the path, in whatever form."""
    stores = (store.base for store in facts.stores if loop in store.loops)
    return frozenset(name for base in stores for name in base if not name.startswith("."))
