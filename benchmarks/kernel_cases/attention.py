"""Tree attention against one dense masked product per request, on the batches an engine meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from ddtree.kernels.tree.ancestors import ancestors
from ddtree.kernels.tree.attention import Form, tree_attention

from ..timing import Case

HEADS, KV_HEADS, DIM, BLOCK = 16, 4, 128, 16
SCALE = DIM**-0.5
PREFILL = 2048
# Requests, rows of each one's tree (1 is ordinary decoding), context, and whether a prompt of
# PREFILL rows comes first.
CPU_BATCHES = (
    (1, 33, 1024, False),
    (8, 1, 1024, False),
    (8, 33, 1024, False),
    (8, 65, 2048, False),
    (8, 33, 1024, True),
)
GPU_BATCHES = (*CPU_BATCHES, (1, 65, 32768, False), (64, 33, 8192, False))


class Batch:
    """A random batch on one device, with the dense masks that the baseline needs."""

    def __init__(
        self,
        requests: int,
        rows: int,
        context: int,
        prefill: bool,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        self.query_lens = [PREFILL] * prefill + [rows] * requests
        self.seq_lens = [PREFILL] * prefill + [context + rows] * requests
        blocks = [-(-length // BLOCK) for length in self.seq_lens]
        shape = (sum(blocks), 2, BLOCK, KV_HEADS, DIM)
        cache = torch.randn(shape, dtype=dtype, device=device)
        order = torch.split_with_sizes(torch.randperm(sum(blocks)), blocks)
        table = torch.nn.utils.rnn.pad_sequence(list(order), batch_first=True)
        starts = torch.tensor([0, *self.query_lens]).cumsum(0)
        total = sum(self.query_lens)
        self.query = torch.randn(total, HEADS, DIM, dtype=dtype, device=device)
        self.key_cache, self.value_cache = cache[:, 0], cache[:, 1]
        self.block_table = table.to(device, torch.int32)
        visible = random_trees(len(self.query_lens), rows)
        chains = torch.zeros(len(self.query_lens), dtype=torch.bool)
        chains[0] = prefill
        self.tensors: dict[str, Any] = {
            "query": self.query,
            "key_cache": self.key_cache,
            "value_cache": self.value_cache,
            "block_table": self.block_table,
            "seq_lens": torch.tensor(self.seq_lens, dtype=torch.int32, device=device),
            "query_start": starts.to(device, torch.int32),
            "visible": visible.to(device),
            "is_chain": chains.to(device),
        }
        lengths = zip(self.query_lens, self.seq_lens, chains.tolist(), visible, strict=True)
        self.masks = [dense_mask(*one).to(device) for one in lengths]
        self.bytes_moved = 2 * self.query.nbytes + sum(self.seq_lens) * cache[0, :, 0].nbytes

    def dense(self) -> torch.Tensor:
        """One masked product per request; the masks are there beforehand."""
        results = []
        for queries, table, seq_len, mask in zip(
            torch.split_with_sizes(self.query, self.query_lens),
            self.block_table,
            self.seq_lens,
            self.masks,
            strict=True,
        ):
            held = table[: -(-seq_len // BLOCK)]
            keys, values = (
                cache[held].flatten(0, 1)[:seq_len].transpose(0, 1)[None]
                for cache in (self.key_cache, self.value_cache)
            )
            heads = queries.transpose(0, 1)[None]
            results.append(
                scaled_dot_product_attention(heads, keys, values, attn_mask=mask, enable_gqa=True)[
                    0
                ].transpose(0, 1)
            )
        return torch.cat(results)

    def form(self, name: Form, *, lengths: bool = False) -> Callable[[], object]:
        """A call of `tree_attention`; with `lengths` the host knows each request's."""
        known: dict[str, Any] = {"query_lens": self.query_lens, "seq_lens_host": self.seq_lens}
        return partial(
            tree_attention,
            **self.tensors,
            scale=SCALE,
            max_query_len=max(self.query_lens),
            max_seq_len=max(self.seq_lens),
            form=name,
            **(known if lengths else {}),
        )


def random_trees(requests: int, rows: int) -> torch.Tensor:
    """Visibility words [requests, rows, W] of trees grown at random rows."""
    nodes = torch.arange(rows - 1)
    parents = (torch.rand(requests, rows - 1) * (nodes + 1)).to(torch.int32)
    count = torch.full((requests,), rows - 1, dtype=torch.int32)
    return ancestors(parents, count, form="vectorised").visible


def dense_mask(rows: int, seq_len: int, chain: bool, words: torch.Tensor) -> torch.Tensor:
    """What each row of a request sees of its whole sequence: bool [rows, seq_len]."""
    mask = torch.ones(rows, seq_len, dtype=torch.bool)
    own = mask[:, seq_len - rows :]
    if chain:
        own.tril_()
    else:
        row = torch.arange(rows)
        own.copy_((words[:, row // 64] >> (row % 64)) & 1 != 0)
    return mask


def cases() -> Iterator[Case]:
    """Every batch, in float32 and bfloat16 on the CPU and in bfloat16 on a GPU."""
    for dtype in (torch.float32, torch.bfloat16):
        for shape in CPU_BATCHES:
            batch = Batch(*shape, dtype, "cpu")
            forms = {
                "dense per request": batch.dense,
                "vectorised": batch.form("vectorised", lengths=True),
            }
            # Padding eight trees to a prompt's length costs gigabytes.
            if not shape[3]:
                forms["vectorised, padded"] = batch.form("vectorised")
            yield Case("attention", label("cpu", dtype, *shape), forms, batch.bytes_moved)
    if not torch.cuda.is_available():
        return
    for shape in GPU_BATCHES:
        batch = Batch(*shape, torch.bfloat16, "cuda")
        forms = {"dense per request": batch.dense, "kernel": batch.form("kernel")}
        yield Case("attention", label("gpu", torch.bfloat16, *shape), forms, batch.bytes_moved)


def label(
    device: str, dtype: torch.dtype, requests: int, rows: int, context: int, prefill: bool
) -> str:
    """The sizes in words."""
    first = f"prefill={PREFILL} + " if prefill else ""
    return f"{device} {str(dtype)[6:]} {first}R={requests} rows={rows} context={context}"
