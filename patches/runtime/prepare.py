"""Find the trees among a step's drafts and place their rows; runs before the target's forward."""

from __future__ import annotations

from typing import Any

import torch

from .engine import Engine
from .kernels.tree.ancestors import ancestors
from .pending import Drafted
from .step import Step

BEFORE_ROOT = "tokens before the root"


def begin(engine: Engine, runner: Any, metadata: Any, scheduled: list[int]) -> Step | None:
    """Make the step of a batch whose inputs are prepared; None if nothing is drafted in it.

    Args:
        engine: the runner's state.
        runner: vLLM's `GPUModelRunner`.
        metadata: its `SpecDecodeMetadata`, or None.
        scheduled: token rows of each request.
    """
    requests = runner.input_batch.req_ids[: len(scheduled)]
    positions, trees = engine.pending.take(requests)
    drafts = [0] * len(requests) if metadata is None else list(metadata.num_draft_tokens)
    if not any(drafts):
        return None
    kept = [
        number
        for number, position in enumerate(positions)
        if drafts[position] and scheduled[position] == drafts[position] + 1
    ]
    # Nodes after rows that are no root cannot be masked, nor be read as a chain.
    unread = {position for position in positions if drafts[position]}
    unread -= {positions[number] for number in kept}
    engine.counters.fallbacks.update([BEFORE_ROOT] * len(unread))
    return _step(engine, runner, drafts, scheduled, positions, trees, kept, sorted(unread))


def to_depths(runner: Any, step: Step) -> None:
    """Move every node's position from its row's place to its depth.

    The buffer is written in place, since a captured graph reads this very memory.
    """
    row, offset = step.row_offsets()
    step.shift = (row, offset.to(runner.positions.dtype))
    runner.positions.index_add_(0, *step.shift)


def to_places(runner: Any, step: Step) -> None:
    """Undo `to_depths`, before the drafter reads the positions."""
    if step.shift is not None:
        row, offset = step.shift
        runner.positions.index_add_(0, row, -offset)


def _step(
    engine: Engine,
    runner: Any,
    drafts: list[int],
    scheduled: list[int],
    positions: list[int],
    trees: Drafted | None,
    kept: list[int],
    unread: list[int],
) -> Step:
    device = runner.device
    first_rows, logits_rows, row, logits_row = [], [], 0, 0
    for drafted, rows in zip(drafts, scheduled, strict=True):
        first_rows.append(row + rows - drafted - 1)
        logits_rows.append(logits_row)
        row, logits_row = row + rows, logits_row + drafted + 1
    token_start = torch.tensor(first_rows, dtype=torch.int32, device=device)
    lengths = torch.tensor(drafts, dtype=torch.int32, device=device)
    width = max(drafts)
    tokens = _drafted_tokens(runner, token_start, lengths, width)
    parents = torch.arange(width, dtype=torch.int32, device=device).repeat(len(drafts), 1)
    count = lengths.clone()
    with_tree = [positions[number] for number in kept]
    if trees is not None and kept:
        _put_trees(trees, kept, with_tree, tokens, parents, count)
    if unread:
        count[torch.tensor(unread, device=device)] = 0
    seen = ancestors(parents, count)
    # Where reading waits for nothing, trees that turned out to be chains are left to vLLM.
    if device.type == "cpu":
        chain = seen.is_chain.tolist()
        with_tree = [position for position in with_tree if not chain[position]]
    eligible = [
        position
        for position, drafted in enumerate(drafts)
        if drafted and engine.reason(runner, runner.input_batch.req_ids[position]) is None
    ]
    return Step(
        caches=engine.caches,
        drafts=drafts,
        first_rows=first_rows,
        trees=with_tree,
        walked=eligible,
        token_start=token_start,
        logits_start=torch.tensor(logits_rows, dtype=torch.int32, device=device),
        tokens=tokens,
        parents=parents,
        count=count,
        visible=seen.visible,
        depth=seen.depth,
        is_chain=seen.is_chain,
    )


def _drafted_tokens(
    runner: Any, start: torch.Tensor, lengths: torch.Tensor, width: int
) -> torch.Tensor:
    """What was really scheduled: [R, width] int32, -1 where a request has fewer drafts."""
    place = torch.arange(width, device=start.device)
    ids = runner.input_ids.gpu
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
    index = torch.tensor(lines, device=count.device)
    chosen = torch.tensor(kept, device=count.device)
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
