"""Walk the step's trees and make the accepted path look like an ordinary chain to vLLM."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .engine import Engine
from .kernels.tree.rows import row_order
from .kernels.tree.walk import walk
from .prepare import to_places
from .step import Step
from .transfer import to_device

NO_MASK = "attention did not apply the mask"

Slots = Callable[[int], torch.Tensor]


def accept(
    engine: Engine, step: Step, logits: torch.Tensor, tokens: torch.Tensor, slots: Slots
) -> torch.Tensor:
    """Decide the step's tokens, commit the accepted rows, and return the logits in their order.

    Args:
        engine: the runner's state.
        step: the step; its outcome is written here.
        logits: [rows, V], root and nodes of each request.
        tokens: [rows] the target's token at each of them.
        slots: gives the slot of every token row, by KV cache group: [T] int64.
    """
    _drop_unmasked(engine, step)
    result = walk(
        tokens.to(torch.int32), step.tokens, step.parents, step.count, row_start=step.logits_start
    )
    step.perm, step.accepted, step.bonus = result.perm, result.accepted, result.bonus
    step.is_walked = _marked(step, step.walked)
    if step.counted:
        same = len(step.counted) == len(step.walked)
        counted = step.is_walked if same else _marked(step, step.counted)
        engine.counters.add(step.parents, step.count, step.perm, step.accepted, counted)
    if step.trees:
        step.logits_order = row_order(
            step.perm, step.count, rows=len(logits), row_start=step.logits_start
        )
        logits = logits.index_select(0, step.logits_order)
        _move_rows(engine, step, slots)
    return logits


def path_drafts(step: Step, vocabulary: int) -> torch.Tensor:
    """The drafts in the path's order, and a mismatch right after the path: [R, N] int32."""
    assert step.perm is not None and step.accepted is not None and step.bonus is not None
    assert step.is_walked is not None
    # Column 0 of the permutation is the root, which is no draft.
    order = (step.perm[:, 1:] - 1).clamp(min=0).long()
    drafts = step.tokens.gather(1, order)
    place = torch.arange(drafts.shape[1], device=drafts.device)
    end = (place == step.accepted[:, None]) & step.is_walked[:, None]
    mismatch = (step.bonus + 1) % vocabulary
    return torch.where(end, mismatch[:, None].to(drafts.dtype), drafts)


def write_drafts(step: Step, vocabulary: int) -> None:
    """Write `path_drafts` over the step's drafts in the runner's own input ids."""
    drafts = path_drafts(step, vocabulary)
    ids, place = step.batch.input_ids, torch.arange(drafts.shape[1], device=drafts.device)
    real = place < step.lengths[:, None]
    root = step.token_start[:, None].long()
    # Places that a request does not have write its root's own id over itself.
    row = torch.where(real, root + 1 + place, root)
    value = torch.where(real, drafts.to(ids.dtype), ids[root])
    ids.index_copy_(0, row.flatten(), value.flatten())


def path_tokens(step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """The accepted drafts and then the bonus token, -1 after it: [R, N + 1] int32; their number."""
    assert step.perm is not None and step.accepted is not None and step.bonus is not None
    order = (step.perm[:, 1:] - 1).clamp(min=0).long()
    tokens = torch.nn.functional.pad(step.tokens.gather(1, order), (0, 1), value=-1)
    place = torch.arange(tokens.shape[1], device=tokens.device)
    tokens = torch.where(place == step.accepted[:, None], step.bonus[:, None], tokens)
    return torch.where(place > step.accepted[:, None], -1, tokens), step.accepted + 1


def real_drafts(step: Step) -> tuple[torch.Tensor, torch.Tensor]:
    """Index of the real drafts in [R, N], request by request."""
    device = step.tokens.device
    lines = [line for line, drafted in enumerate(step.drafts) for _ in range(drafted)]
    columns = [column for drafted in step.drafts for column in range(drafted)]
    return to_device(lines, device), to_device(columns, device)


def _drop_unmasked(engine: Engine, step: Step) -> None:
    """Take back the nodes of trees whose mask some layer did not apply: their root stays right."""
    if step.trees and not engine.expected_layers() <= step.layers_masked:
        engine.count(NO_MASK, (step.batch.requests[request] for request in step.trees))
        step.count.index_fill_(0, to_device(step.trees, step.count.device), 0)


def _marked(step: Step, requests: list[int]) -> torch.Tensor:
    """[R] bool, the requests of these indices."""
    found = torch.zeros_like(step.is_chain)
    return found.index_fill_(0, to_device(requests, found.device), True)


def _move_rows(engine: Engine, step: Step, slots: Slots) -> None:
    """Put keys, values, ids and positions of the accepted rows where a chain has them."""
    assert step.perm is not None and step.accepted is not None
    rows = step.first_rows[-1] + step.drafts[-1] + 1
    step.token_order = row_order(step.perm, step.count, rows=rows, row_start=step.token_start)
    if "commit" not in engine.settings.without:
        longest = step.perm.shape[1] - 1
        for group, layers in enumerate(engine.layers or []):
            if layers:
                engine.caches.commit(
                    layers, slots(group)[:rows], step.perm, step.accepted, step.token_start, longest
                )
    to_places(step)
    ids = step.batch.input_ids
    ids[:rows] = ids[:rows].index_select(0, step.token_order)
