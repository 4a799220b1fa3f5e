"""Find the trees among a step's drafts and place their rows; runs before the target's forward."""

from __future__ import annotations

import torch

from .active import ACTIVE
from .batch import Batch
from .engine import Engine, is_warm_up
from .guards import Unhooked, require_walked
from .kernels.tree.ancestors import ancestors
from .pending import Drafted
from .step import Step
from .transfer import to_device

BEFORE_ROOT = "tokens before the root"


def begin(engine: Engine, batch: Batch) -> Step | None:
    """Make the step of a batch whose inputs are prepared; None if nothing is drafted in it.

    The drafter's forward is over, so nothing is in progress but this step from here on.
    """
    require_walked(engine)
    ACTIVE.clear()
    positions, trees = engine.pending.take(batch.requests)
    drafts, scheduled = batch.drafts, batch.scheduled
    if not any(drafts):
        engine.step = None
        return None
    kept = [
        number
        for number, position in enumerate(positions)
        if drafts[position] and scheduled[position] == drafts[position] + 1
    ]
    # Nodes after rows that are no root cannot be masked, nor be read as a chain.
    unread = {position for position in positions if drafts[position]}
    unread -= {positions[number] for number in kept}
    engine.count(BEFORE_ROOT, (batch.requests[position] for position in unread))
    engine.step = _step(engine, batch, positions, trees, kept, sorted(unread))
    if engine.step.trees:
        _enter(engine, engine.step)
    return engine.step


def _enter(engine: Engine, step: Step) -> None:
    """The target's forward comes next: its rows stand at their depths and see their ancestors."""
    if engine.layers is None:
        raise Unhooked("the caches were allocated without a look at the target's layers")
    ACTIVE.unwalked = step
    if "positions" not in engine.settings.without:
        to_depths(step)
    if "mask" not in engine.settings.without:
        ACTIVE.masked = step
    else:
        step.layers_masked |= engine.expected_layers()


def to_depths(step: Step) -> None:
    """Move every node's position from its row's place to its depth.

    The buffer is written in place, since a captured graph reads this very memory.
    """
    positions = step.batch.positions
    row, offset = step.row_offsets()
    step.shift = (row, offset.to(positions.dtype))
    positions.index_add_(0, *step.shift)


def to_places(step: Step) -> None:
    """Undo `to_depths`, before the drafter reads the positions."""
    if step.shift is not None:
        row, offset = step.shift
        step.batch.positions.index_add_(0, row, -offset)
        step.shift = None


def _step(
    engine: Engine,
    batch: Batch,
    positions: list[int],
    trees: Drafted | None,
    kept: list[int],
    unread: list[int],
) -> Step:
    device, drafts = batch.input_ids.device, batch.drafts
    first_rows, logits_rows, row, logits_row = [], [], 0, 0
    for drafted, rows in zip(drafts, batch.scheduled, strict=True):
        first_rows.append(row + rows - drafted - 1)
        logits_rows.append(logits_row)
        row, logits_row = row + rows, logits_row + drafted + 1
    token_start = to_device(first_rows, device, torch.int32)
    lengths = to_device(drafts, device, torch.int32)
    width = max(drafts)
    tokens = _drafted_tokens(batch.input_ids, token_start, lengths, width)
    parents = torch.arange(width, dtype=torch.int32, device=device).repeat(len(drafts), 1)
    count = lengths.clone()
    with_tree = [positions[number] for number in kept]
    if trees is not None and kept:
        _put_trees(trees, kept, with_tree, tokens, parents, count)
    if unread:
        count.index_fill_(0, to_device(unread, device), 0)
    seen = ancestors(parents, count)
    # Where reading waits for nothing, trees that turned out to be chains are left to vLLM.
    if device.type == "cpu":
        chain = seen.is_chain.tolist()
        with_tree = [position for position in with_tree if not chain[position]]
    # Rows that were drafted; a runner may pad with others.
    recorded = {positions[number] for number in kept}
    eligible = [
        position
        for position, drafted in enumerate(drafts)
        if drafted and engine.reason(batch.requests[position]) is None
    ]
    return Step(
        batch=batch,
        caches=engine.caches,
        drafts=drafts,
        first_rows=first_rows,
        trees=with_tree,
        walked=eligible,
        counted=[
            position
            for position in eligible
            if position in recorded and not is_warm_up(batch.requests[position])
        ],
        token_start=token_start,
        logits_start=to_device(logits_rows, device, torch.int32),
        tokens=tokens,
        parents=parents,
        lengths=lengths,
        count=count,
        visible=seen.visible,
        depth=seen.depth,
        is_chain=seen.is_chain,
    )


def _drafted_tokens(
    ids: torch.Tensor, start: torch.Tensor, lengths: torch.Tensor, width: int
) -> torch.Tensor:
    """What was really scheduled: [R, width] int32, -1 where a request has fewer drafts."""
    place = torch.arange(width, device=start.device)
    row = (start[:, None] + 1 + place).clamp(max=ids.shape[0] - 1)
    return torch.where(place < lengths[:, None], ids[row].to(torch.int32), -1)


def _put_trees(
    trees: Drafted,
    kept: list[int],
    lines: list[int],
    tokens: torch.Tensor,
    parents: torch.Tensor,
    count: torch.Tensor,
) -> None:
    """Write the recorded trees into `parents` and `count` where their tokens were scheduled.

    A scheduler may cut drafts off at the end, which leaves a tree. Drafts that are not the
    tree's are whatever replaced them, in order: a chain.
    """
    index = to_device(lines, count.device)
    chosen = to_device(kept, count.device)
    width = min(tokens.shape[1], trees.tokens.shape[1])
    scheduled = count.index_select(0, index)
    nodes = torch.minimum(trees.count.index_select(0, chosen), scheduled)
    place = torch.arange(width, device=count.device)
    drafted = trees.tokens.index_select(0, chosen)[:, :width]
    now = tokens.index_select(0, index)[:, :width]
    same = ((drafted == now) | (place >= nodes[:, None])).all(1) & (nodes > 0)
    chain = parents.index_select(0, index)
    recorded = chain.clone()
    recorded[:, :width] = trees.parents.index_select(0, chosen)[:, :width]
    parents.index_copy_(0, index, torch.where(same[:, None], recorded, chain))
    count.index_copy_(0, index, torch.where(same, nodes, scheduled))
