"""Attention of a batch's query rows over their paged context and the visible rows of their step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from .. import checks
from . import reference, vectorised

Form = Literal["auto", "reference", "vectorised", "kernel"]
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_DIM = 256
MAX_SPLITS = 32


# As many arguments as an engine's attention metadata has parts.
def tree_attention(  # noqa: PLR0913
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    query_start: torch.Tensor,
    visible: torch.Tensor,
    is_chain: torch.Tensor,
    *,
    scale: float,
    max_query_len: int,
    max_seq_len: int,
    out: torch.Tensor | None = None,
    form: Form = "auto",
    query_lens: Sequence[int] | None = None,
    seq_lens_host: Sequence[int] | None = None,
    num_splits: int | None = None,
) -> torch.Tensor:
    """Attend with every query row to its request's context and to the rows of its step it sees.

    The step's own keys and values already lie in the cache: row `i` of a request with `n` rows at
    position `seq_len - n + i`. A row always sees itself. A chain's row sees every earlier row, and
    its words are ignored; a tree's row `i` sees row `j` where bit `j % 64` of
    `visible[r, i, j // 64]` is set. Slots that no row sees may hold anything, NaN included.

    Args:
        query: [T, Hq, dim] float32, float16 or bfloat16; dim at most 256, its stride 1.
        key_cache: [blocks, block, Hkv, dim] of the query's dtype, any strides; Hkv divides Hq.
        value_cache: as `key_cache`.
        block_table: [R, max_blocks] int32; entries past the sequence are not read.
        seq_lens: [R] int32, positions including the step's own rows.
        query_start: [R + 1] int32, from 0; rows from query_start[R] on belong to no request.
        visible: [R, Q, W] int64.
        is_chain: [R] bool.
        scale: factor of the scores.
        max_query_len: no request has more rows.
        max_seq_len: no request has more positions.
        out: [T, Hq, dim], the result's place, of the query's dtype.
        form: "auto" takes the kernel on a GPU and the vectorised form elsewhere.
        query_lens: the requests' rows on the host; spares the vectorised form its padding.
        seq_lens_host: the requests' positions on the host; given with `query_lens`.
        num_splits: parts of a context in the kernel; chosen by the card and the batch when None.

    Returns:
        [T, Hq, dim] in the query's dtype. Rows of no request, and rows that see nothing because
        seq_len is smaller than the request's rows, are 0.

    Raises:
        ValueError: an argument's shape, dtype, device, stride or range is not as above.

    Source: DDTree, Ringel & Romano 2026, arXiv 2604.12989, verification; the split over the context
    follows Flash-Decoding (Dao et al. 2023), the softmax Milakov & Gimelshein, arXiv 1805.02867.
    """
    _check_query(query, key_cache, value_cache, out)
    _check_batch(query, block_table, seq_lens, query_start, visible, is_chain)
    _check_bounds(query, key_cache, block_table, max_query_len, max_seq_len)
    _check_lengths(query, seq_lens, query_lens, seq_lens_host, max_query_len, max_seq_len)
    if form not in ("auto", "reference", "vectorised", "kernel"):
        raise ValueError(f"form: expected auto, reference, vectorised or kernel, found {form!r}")
    if num_splits is not None and not 1 <= num_splits <= MAX_SPLITS:
        raise ValueError(f"num_splits: expected 1 to {MAX_SPLITS}, found {num_splits}")
    if out is None:
        out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    if form == "auto":
        form = "kernel" if query.is_cuda else "vectorised"
    cached = (query, key_cache, value_cache, block_table)
    if query.numel() == 0:
        return out
    if form == "reference":
        out.copy_(reference.attend(*cached, seq_lens, query_start, visible, is_chain, scale=scale))
    elif form == "kernel":
        # A machine without a GPU may be without Triton.
        from . import kernel

        kernel.attend(
            out, *cached, seq_lens, query_start, visible, is_chain,
            scale=scale, max_query_len=max_query_len, max_seq_len=max_seq_len,
            num_splits=num_splits,
        )  # fmt: skip
    elif query_lens is not None and seq_lens_host is not None:
        vectorised.attend_each(
            out, *cached, visible, is_chain,
            scale=scale, query_lens=query_lens, seq_lens=seq_lens_host,
        )  # fmt: skip
    else:
        vectorised.attend_padded(
            out, *cached, seq_lens, query_start, visible, is_chain,
            scale=scale, max_query_len=max_query_len, max_seq_len=max_seq_len,
        )  # fmt: skip
    return out


def _check_query(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    out: torch.Tensor | None,
) -> None:
    checks.tensor("query", query, (None, None, None), DTYPES, contiguous=False)
    dim, device = query.shape[2], query.device
    if not 1 <= dim <= MAX_DIM:
        raise ValueError(f"query: expected a head size of 1 to {MAX_DIM}, found {dim}")
    if query.stride(2) != 1:
        raise ValueError(f"query: expected stride 1 along dim, found strides {query.stride()}")
    cache = (None, None, None, dim)
    checks.tensor("key_cache", key_cache, cache, [query.dtype], device, contiguous=False)
    checks.tensor(
        "value_cache", value_cache, key_cache.shape, [query.dtype], device, contiguous=False
    )
    heads, kv_heads = query.shape[1], key_cache.shape[2]
    if kv_heads == 0 or heads == 0 or heads % kv_heads:
        raise ValueError(
            f"query: expected a multiple of the cache's {kv_heads} heads, found {heads}"
        )
    if key_cache.shape[1] == 0:
        raise ValueError("key_cache: expected at least one slot per block, found 0")
    if out is None:
        return
    checks.tensor("out", out, query.shape, [query.dtype], device, contiguous=False)
    if out.stride(2) != 1:
        raise ValueError(f"out: expected stride 1 along dim, found strides {out.stride()}")


def _check_batch(
    query: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    query_start: torch.Tensor,
    visible: torch.Tensor,
    is_chain: torch.Tensor,
) -> None:
    device, int32 = query.device, [torch.int32]
    checks.tensor("seq_lens", seq_lens, (None,), int32, device)
    requests = seq_lens.shape[0]
    checks.tensor("query_start", query_start, (requests + 1,), int32, device)
    checks.tensor("visible", visible, (requests, None, None), [torch.int64], device)
    checks.tensor("is_chain", is_chain, (requests,), [torch.bool], device)
    checks.tensor("block_table", block_table, (requests, None), int32, device, contiguous=False)
    if block_table.shape[1] > 1 and block_table.stride(1) != 1:
        raise ValueError(
            f"block_table: expected stride 1 along a line, found strides {block_table.stride()}"
        )


def _check_bounds(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    block_table: torch.Tensor,
    max_query_len: int,
    max_seq_len: int,
) -> None:
    if not 0 <= max_query_len <= query.shape[0]:
        raise ValueError(
            f"max_query_len: expected 0 to {query.shape[0]} rows, found {max_query_len}"
        )
    positions = block_table.shape[1] * key_cache.shape[1]
    if not 0 <= max_seq_len <= positions:
        raise ValueError(
            f"max_seq_len: expected 0 to the block table's {positions}, found {max_seq_len}"
        )


def _check_lengths(
    query: torch.Tensor,
    seq_lens: torch.Tensor,
    query_lens: Sequence[int] | None,
    seq_lens_host: Sequence[int] | None,
    max_query_len: int,
    max_seq_len: int,
) -> None:
    if query_lens is None and seq_lens_host is None:
        return
    if query_lens is None or seq_lens_host is None:
        raise ValueError("query_lens: expected together with seq_lens_host, found one of them")
    for name, lengths, most in (
        ("query_lens", query_lens, max_query_len),
        ("seq_lens_host", seq_lens_host, max_seq_len),
    ):
        if len(lengths) != seq_lens.shape[0]:
            raise ValueError(f"{name}: expected {seq_lens.shape[0]} lengths, found {len(lengths)}")
        if any(not 0 <= length <= most for length in lengths):
            raise ValueError(f"{name}: expected lengths of 0 to {most}, found {list(lengths)}")
    if sum(query_lens) > query.shape[0]:
        raise ValueError(f"query_lens: expected a sum of at most {query.shape[0]} rows")
    if any(rows > total for rows, total in zip(query_lens, seq_lens_host, strict=True)):
        raise ValueError("seq_lens_host: expected no fewer positions than query_lens has rows")
