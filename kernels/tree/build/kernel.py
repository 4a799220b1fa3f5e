"""Best-first build in one launch: each row offers its next child, and the best offer is taken."""

# A jitted function's arguments are Triton's own types, which have no annotations.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"

from __future__ import annotations

import torch
import triton
import triton.language as tl

# The bits of an infinite cost, above 32 bits of whatever breaks ties.
IMPOSSIBLE = tl.constexpr(0x7F800000 << 32)
INDEX = tl.constexpr(0xFFFFFFFF)


@triton.jit
def _cost_bits(logp):
    # A comparison with NaN is false; what it guards is then infinite.
    cost = tl.where(logp >= 0, 0.0, tl.where(logp < 0, -logp, float("inf")))
    return cost.to(tl.int32, bitcast=True).to(tl.int64) << 32


@triton.jit
def _next_candidate(
    ids_ptr, logp_ptr, line, candidates, after, CANDIDATES: tl.constexpr, RANKED: tl.constexpr
):
    """The best candidate of one position that comes after `after`: its cost's bits, its index."""
    if RANKED:
        index = (after & INDEX).to(tl.int32) + 1
        inside = index < candidates
        logp = tl.load(logp_ptr + line + index, mask=inside, other=float("-inf"))
        found = _cost_bits(logp) | index
    else:
        lane = tl.arange(0, CANDIDATES)
        inside = lane < candidates
        token = tl.load(ids_ptr + line + lane, mask=inside, other=-1)
        logp = tl.load(logp_ptr + line + lane, mask=inside, other=float("-inf"))
        key = _cost_bits(logp) | lane
        found = tl.min(tl.where(key > after, key, IMPOSSIBLE))
        repeated = _is_repeated(token, lane, found, inside)
        while repeated > 0:
            found = tl.min(tl.where(key > found, key, IMPOSSIBLE))
            repeated = _is_repeated(token, lane, found, inside)
    return found


@triton.jit
def _is_repeated(token, lane, found, inside):
    index = (found & INDEX).to(tl.int32)
    own = tl.sum(tl.where(lane == index, token, 0))
    before = inside & (lane < index) & (token == own) & (found < IMPOSSIBLE)
    return tl.sum(before.to(tl.int32))


@triton.jit
def _total(cost, candidate):
    step = (candidate >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return cost + step


@triton.jit
def _offer(total, depth, row, early):
    """What orders the nodes on offer: cost, depth, parent's row; a spine that leads is below 0."""
    bits = total.to(tl.int32, bitcast=True).to(tl.int64)
    key = (bits << 32) | (depth << 16) | row
    return tl.where(early & (key < IMPOSSIBLE), key | (-1 << 63), key)


@triton.jit
def build_kernel(
    tokens_ptr,  # [R, nodes] int32
    parents_ptr,  # [R, nodes] int32
    depth_ptr,  # [R, nodes] int32
    count_ptr,  # [R] int32
    ids_ptr,  # [R, positions, candidates] int32 or int64
    logp_ptr,  # [R, positions, candidates] float32
    budgets_ptr,  # [R] int32, or None
    nodes,
    positions,
    candidates,
    max_siblings,
    ROWS: tl.constexpr,
    CANDIDATES: tl.constexpr,
    SPINE_FIRST: tl.constexpr,
    RANKED: tl.constexpr,
):
    request = tl.program_id(0).to(tl.int64)
    own_ids_ptr = ids_ptr + request * positions * candidates
    own_logp_ptr = logp_ptr + request * positions * candidates
    out = request * nodes
    limit = nodes
    if budgets_ptr is not None:
        limit = tl.minimum(nodes, tl.load(budgets_ptr + request))
    row = tl.arange(0, ROWS)
    # Comes before every candidate, and its index before index 0.
    none = tl.full([], -1, tl.int64)
    # Of every row: its cost, its next child (cost and index), how many it has, and the offer.
    cost = tl.zeros([ROWS], tl.float32)
    first = _next_candidate(own_ids_ptr, own_logp_ptr, 0, candidates, none, CANDIDATES, RANKED)
    child = tl.full([ROWS], IMPOSSIBLE, tl.int64)
    child = tl.where(row == 0, first, child)
    children = tl.zeros([ROWS], tl.int32)
    offer = tl.full([ROWS], IMPOSSIBLE, tl.int64)
    offer = tl.where(row == 0, _offer(_total(0.0, first), 1, 0, SPINE_FIRST), offer)
    node = 0
    best = tl.min(offer)
    while (best < IMPOSSIBLE) & (node < limit):
        parent = (best & 0xFFFF).to(tl.int32)
        depth = ((best >> 16) & 0xFFFF).to(tl.int32)
        is_parent = row == parent
        taken = tl.sum(tl.where(is_parent, child, 0))
        base = tl.sum(tl.where(is_parent, cost, 0.0))
        siblings = tl.sum(tl.where(is_parent, children, 0)) + 1
        line = (depth - 1) * candidates
        index = (taken & INDEX).to(tl.int32)
        tl.store(tokens_ptr + out + node, tl.load(own_ids_ptr + line + index).to(tl.int32))
        tl.store(parents_ptr + out + node, parent)
        tl.store(depth_ptr + out + node, depth)
        node += 1
        # The parent offers the next sibling.
        following = _next_candidate(
            own_ids_ptr, own_logp_ptr, line, candidates, taken, CANDIDATES, RANKED
        )
        following = tl.where(siblings < max_siblings, following, IMPOSSIBLE)
        child = tl.where(is_parent, following, child)
        children = tl.where(is_parent, siblings, children)
        key = _offer(_total(base, following), depth.to(tl.int64), parent, False)
        offer = tl.where(is_parent, key, offer)
        # The new row offers its first child; a row of the last position has none.
        is_new = row == node
        total = _total(base, taken)
        deeper = tl.minimum(depth, positions - 1) * candidates
        below = _next_candidate(
            own_ids_ptr, own_logp_ptr, deeper, candidates, none, CANDIDATES, RANKED
        )
        below = tl.where(depth < positions, below, IMPOSSIBLE)
        cost = tl.where(is_new, total, cost)
        child = tl.where(is_new, below, child)
        key = _offer(_total(total, below), depth.to(tl.int64) + 1, node, best < 0)
        offer = tl.where(is_new, key, offer)
        best = tl.min(offer)
    tl.store(count_ptr + request, node)
    padding = (row >= node) & (row < nodes)
    tl.store(tokens_ptr + out + row, -1, mask=padding)
    tl.store(parents_ptr + out + row, 0, mask=padding)
    tl.store(depth_ptr + out + row, 0, mask=padding)


def outputs(ids: torch.Tensor, nodes: int) -> tuple[torch.Tensor, ...]:
    """Uninitialised tokens, parents, depth [R, nodes] and count [R]."""
    requests = len(ids)
    shapes = ((requests, nodes), (requests, nodes), (requests, nodes), (requests,))
    return tuple(ids.new_empty(shape, dtype=torch.int32) for shape in shapes)


def build(
    out: tuple[torch.Tensor, ...],
    ids: torch.Tensor,
    logp: torch.Tensor,
    budgets: torch.Tensor | None,
    spine_first: bool,
    max_siblings: int | None,
    ranked: bool,
) -> None:
    """Launch one program per request, into `out`."""
    requests, positions, candidates = ids.shape
    nodes = out[0].shape[1]
    rows = triton.next_power_of_2(nodes + 1)
    build_kernel[(requests,)](
        *out, ids, logp, budgets, nodes, positions, candidates,
        candidates if max_siblings is None else max_siblings,
        ROWS=rows, CANDIDATES=triton.next_power_of_2(candidates),
        SPINE_FIRST=spine_first, RANKED=ranked, num_warps=1 if rows <= 256 else 4,
    )  # fmt: skip
