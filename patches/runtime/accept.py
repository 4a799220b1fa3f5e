"""Walk the step's trees and make the accepted path look like an ordinary chain to vLLM."""

from __future__ import annotations

from typing import Any

import torch

from .draws import targets
from .engine import Engine
from .kernels.tree.rows import row_order
from .kernels.tree.walk import walk
from .prepare import to_places
from .step import Step

NO_MASK = "attention did not apply the mask"


def accept(
    engine: Engine, runner: Any, step: Step, logits: torch.Tensor, metadata: Any
) -> torch.Tensor:
    """Decide the step's tokens, commit the accepted rows, and return the logits in their order.

    Args:
        engine: the runner's state.
        runner: vLLM's `GPUModelRunner`.
        step: the step; its outcome is written here.
        logits: [rows, V], root and nodes of each request.
        metadata: vLLM's `SpecDecodeMetadata`; its draft tokens are replaced.
    """
    _drop_unmasked(engine, step)
    _walk(runner, step, logits)
    assert step.perm is not None and step.accepted is not None and step.bonus is not None
    walked = torch.zeros_like(step.is_chain)
    walked[torch.tensor(step.walked, dtype=torch.int64, device=walked.device)] = True
    engine.counters.add(step.parents, step.count, step.perm, step.accepted, walked)
    if step.trees:
        step.logits_order = row_order(
            step.perm, step.count, rows=len(logits), row_start=step.logits_start
        )
        logits = logits.index_select(0, step.logits_order)
        _move_rows(engine, runner, step)
    _linearise(step, logits.shape[-1], metadata, walked)
    return logits


def _drop_unmasked(engine: Engine, step: Step) -> None:
    """Take back the nodes of trees whose mask some layer did not apply: their root stays right."""
    if step.trees and not engine.expected_layers() <= step.layers_masked:
        engine.counters.fallbacks.update([NO_MASK] * len(step.trees))
        step.count[torch.tensor(step.trees, device=step.count.device)] = 0


def _walk(runner: Any, step: Step, logits: torch.Tensor) -> None:
    spans, first = [], 0
    for drafted in step.drafts:
        spans.append((first, first + drafted + 1))
        first += drafted + 1
    lengths = torch.tensor([drafted + 1 for drafted in step.drafts], device=logits.device)
    request = torch.repeat_interleave(lengths, output_size=first)
    tokens = targets(logits, request, runner.input_batch.sampling_metadata, spans)
    result = walk(
        tokens.to(torch.int32), step.tokens, step.parents, step.count, row_start=step.logits_start
    )
    step.perm, step.accepted, step.bonus = result.perm, result.accepted, result.bonus


def _move_rows(engine: Engine, runner: Any, step: Step) -> None:
    """Put keys, values, ids and positions of the accepted rows where a chain has them."""
    assert step.perm is not None and step.accepted is not None
    rows = step.first_rows[-1] + step.drafts[-1] + 1
    step.token_order = row_order(step.perm, step.count, rows=rows, row_start=step.token_start)
    if "commit" not in engine.settings.without:
        longest = step.perm.shape[1] - 1
        for group, layers in enumerate(engine.layers or []):
            slots = runner.input_batch.block_table[group].slot_mapping.gpu[:rows]
            engine.caches.commit(layers, slots, step.perm, step.accepted, step.token_start, longest)
    to_places(runner, step)
    ids = runner.input_ids.gpu
    ids[:rows] = ids[:rows].index_select(0, step.token_order)


def _linearise(step: Step, vocabulary: int, metadata: Any, walked: torch.Tensor) -> None:
    """Give the sampler the drafts in the path's order, and a mismatch right after the path."""
    assert step.perm is not None and step.accepted is not None and step.bonus is not None
    # Column 0 of the permutation is the root, which is no draft.
    order = (step.perm[:, 1:] - 1).clamp(min=0).long()
    drafts = step.tokens.gather(1, order)
    place = torch.arange(drafts.shape[1], device=drafts.device)
    end = (place == step.accepted[:, None]) & walked[:, None]
    mismatch = (step.bonus + 1) % vocabulary
    drafts = torch.where(end, mismatch[:, None].to(drafts.dtype), drafts)
    flat = drafts[_real(step, drafts)]
    metadata.draft_token_ids = flat.to(metadata.draft_token_ids.dtype)


def _real(step: Step, drafts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Index of the real drafts in [R, N], request by request."""
    lines = [line for line, drafted in enumerate(step.drafts) for _ in range(drafted)]
    columns = [column for drafted in step.drafts for column in range(drafted)]
    device = drafts.device
    return torch.tensor(lines, device=device), torch.tensor(columns, device=device)
