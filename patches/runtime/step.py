"""One verification step: which rows belong to which tree, and what the walk made of them.

Rows are counted in two ways. The step's token rows (T of them) are all tokens that the target
computes; a request's root and nodes are the last of its rows. Logits rows are only those that are
sampled: the root and the nodes of every request, one request after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from .batch import Batch
from .cache import Caches
from .transfer import to_device


@dataclass(frozen=True, slots=True)
class Masked:
    """The requests of a batch whose attention is a tree's, under one layer's metadata.

    Attributes:
        alone: no other request is in the batch.
        total: rows of these requests.
        rows: [total] int64, their token rows; None if they are the first `total`.
        table: [R', max_blocks] int32, their block tables.
        seq_lens: [R'] int32.
        query_start: [R' + 1] int32.
        visible: [R', N + 1, W] int64.
        is_chain: [R'] bool.
        query_lens: rows of each request.
        seq_lens_host: positions of each request where reading them waits for nothing.
        max_seq_len: no request has more positions.
    """

    alone: bool
    total: int
    rows: torch.Tensor | None
    table: torch.Tensor
    seq_lens: torch.Tensor
    query_start: torch.Tensor
    visible: torch.Tensor
    is_chain: torch.Tensor
    query_lens: list[int]
    seq_lens_host: list[int] | None
    max_seq_len: int


@dataclass(slots=True)
class Step:
    """The drafts of one step and, after the walk, its outcome.

    Attributes:
        batch: what is scheduled, with the runner's buffers.
        caches: of the target's layers.
        drafts: drafted rows of each request, on the host.
        first_rows: token row of each request's root, on the host.
        trees: requests whose rows are a tree that is no chain, by index.
        walked: requests whose tokens the walk decides, by index.
        counted: those of them whose rows a drafter drafted, by index.
        token_start: [R] int32, token row of each root.
        logits_start: [R] int32, logits row of each root.
        tokens: [R, N] int32, the drafted tokens.
        parents: [R, N] int32.
        lengths: [R] int32, drafted rows of each request.
        count: [R] int32, nodes that take part in the walk.
        visible: [R, N + 1, W] int64.
        depth: [R, N + 1] int32.
        is_chain: [R] bool.
        shift: token rows and the distance from their place to their depth, once it is applied.
        slots: [groups, T] int64, where the runner keeps no slots of its own for later.
        judged: requests whose outcome the sampler has been told.
        layers_masked: layers that have attended with the tree's mask.
        perm: [R, N + 1] int32 after the walk.
        accepted: [R] int32 after the walk.
        bonus: [R] int32 after the walk.
        is_walked: [R] bool, after the walk: `walked` on the device.
        token_order: [T] int64, the rows with the accepted path first; None if nothing moves.
        logits_order: the same for logits rows.
    """

    batch: Batch
    caches: Caches
    drafts: list[int]
    first_rows: list[int]
    trees: list[int]
    walked: list[int]
    counted: list[int]
    token_start: torch.Tensor
    logits_start: torch.Tensor
    tokens: torch.Tensor
    parents: torch.Tensor
    lengths: torch.Tensor
    count: torch.Tensor
    visible: torch.Tensor
    depth: torch.Tensor
    is_chain: torch.Tensor
    shift: tuple[torch.Tensor, torch.Tensor] | None = None
    slots: torch.Tensor | None = None
    judged: int = 0
    layers_masked: set[str] = field(default_factory=set)
    perm: torch.Tensor | None = None
    accepted: torch.Tensor | None = None
    bonus: torch.Tensor | None = None
    is_walked: torch.Tensor | None = None
    token_order: torch.Tensor | None = None
    logits_order: torch.Tensor | None = None
    _masked: dict[int, tuple[Any, Masked]] = field(default_factory=dict)

    def masked_of(self, metadata: Any) -> Masked:
        """The step's trees under the metadata of a group of layers; made once per group."""
        known = self._masked.get(id(metadata))
        if known is None:
            # The metadata is kept, so that its identity stays its own.
            known = (metadata, _masked(self, metadata))
            self._masked[id(metadata)] = known
        return known[1]

    def row_offsets(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Token rows of all nodes [R * (N + 1)] and how far each stands from its tree position.

        Rows that are no node's have offset 0, so that adding it changes nothing.
        """
        place = torch.arange(self.depth.shape[1], device=self.depth.device)
        real = (place <= self.count[:, None]) & ~self.is_chain[:, None]
        offset = torch.where(real, self.depth - place, 0)
        row = torch.where(real, self.token_start[:, None] + place, self.token_start[:, None])
        return row.flatten(), offset.flatten()


def _masked(step: Step, metadata: Any) -> Masked:
    device = step.parents.device
    host = device.type == "cpu"
    every = len(step.trees) == len(step.drafts)
    chosen = to_device(step.trees, device)
    lens = [step.drafts[request] + 1 for request in step.trees]
    starts = [0]
    for length in lens:
        starts.append(starts[-1] + length)
    seq_lens = metadata.seq_lens.index_select(0, chosen).to(torch.int32)
    seq_lens_host = seq_lens.tolist() if host else None
    table = metadata.block_table.index_select(0, chosen)
    rows = None
    if not every:
        spans = zip((step.first_rows[request] for request in step.trees), lens, strict=True)
        flat = [row for first, length in spans for row in range(first, first + length)]
        rows = to_device(flat, device)
    return Masked(
        alone=every,
        total=starts[-1],
        rows=rows,
        table=table,
        seq_lens=seq_lens,
        query_start=to_device(starts, device, torch.int32),
        visible=step.visible.index_select(0, chosen),
        is_chain=step.is_chain.index_select(0, chosen),
        query_lens=lens,
        seq_lens_host=seq_lens_host,
        max_seq_len=max(seq_lens_host) if seq_lens_host is not None else metadata.max_seq_len,
    )
