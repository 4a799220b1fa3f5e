"""The specialisations of tree attention that are compiled ahead of time."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ...compile import Variant
from . import kernel

POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
HEADS, KV_HEADS, SLOTS, WORDS = 32, 8, 16, 2
# A tree of 33 rows fills the lanes, one row does not.
TREE, DECODE = 33, 1


def attend_variant(dtype: torch.dtype, dim: int, rows: int, *, split: bool) -> Variant:
    """One specialisation, with the constants that the launch takes from tensors of these shapes."""
    query = torch.empty(rows, HEADS, dim, dtype=dtype, device="meta")
    cache = torch.empty(1, 2, SLOTS, KV_HEADS, dim, dtype=dtype, device="meta")
    element, fixed = POINTERS[dtype], kernel.tile_constants(query, KV_HEADS, rows)
    warps = fixed.pop("num_warps")
    signature = {
        "out_ptr": "*fp32" if split else element,
        "lse_ptr": "*fp32",
        "query_ptr": element,
        "key_ptr": element,
        "value_ptr": element,
        "block_table_ptr": "*i32",
        "seq_lens_ptr": "*i32",
        "query_start_ptr": "*i32",
        "visible_ptr": "*i64",
        "is_chain_ptr": "*i1",
        "scale": "fp32",
        **dict.fromkeys(("num_requests", "num_rows", "num_heads"), "i32"),
        **dict.fromkeys(("visible_rows", "stride_table"), "i32"),
    }
    constexprs: dict[str, object] = {
        **fixed,
        **kernel.layout_constants(query, query, cache[:, 0], cache[:, 1]),
        "WORDS": WORDS,
        "SPLIT": split,
    }
    if not split:
        del signature["lse_ptr"]
        constexprs["lse_ptr"] = None
    label = f"attend {element[1:]} dim={dim} lanes={fixed['BLOCK_M']}" + " split" * split
    return Variant(kernel.attend_kernel, signature, constexprs, warps, label)


def merge_variant(dtype: torch.dtype, dim: int) -> Variant:
    """The merge of as many splits as a launch takes."""
    out = torch.empty(1, HEADS, dim, dtype=dtype, device="meta")
    signature = {
        "out_ptr": POINTERS[dtype],
        "part_ptr": "*fp32",
        "lse_ptr": "*fp32",
        **dict.fromkeys(("num_splits", "num_rows", "num_heads"), "i32"),
    }
    constexprs: dict[str, object] = {**kernel.merge_constants(out, kernel.MAX_SPLITS)}
    label = f"merge {POINTERS[dtype][1:]} dim={dim}"
    return Variant(kernel.merge_kernel, signature, constexprs, kernel.MERGE_WARPS, label)


def _variants() -> Iterator[Variant]:
    for dim in (64, 128, 256):
        for dtype in POINTERS:
            yield attend_variant(dtype, dim, TREE, split=True)
        # Without a split the result is narrowed and no lse is kept, which changes the registers;
        # float16 takes the same as bfloat16.
        for dtype in (torch.float32, torch.bfloat16):
            yield attend_variant(dtype, dim, TREE, split=False)
    # One row per request; the first head size is padded.
    yield attend_variant(torch.bfloat16, 80, DECODE, split=False)
    yield attend_variant(torch.bfloat16, 128, DECODE, split=True)
    yield merge_variant(torch.bfloat16, 128)
    yield merge_variant(torch.float32, 256)


VARIANTS: tuple[Variant, ...] = tuple(_variants())
