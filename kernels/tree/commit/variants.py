"""Specialisations of the commit kernel: each layout, element size, and rows of plain tensors."""

from __future__ import annotations

from ...compile import Variant
from .kernel import WORDS, commit_kernel, tile


def _signature(**absent: object) -> dict[str, str]:
    arguments = {
        "slots_ptr": "*i64",
        "perm_ptr": "*i32",
        "accepted_ptr": "*i32",
        "row_start_ptr": "*i32",
        "rows": "i32",
        "block_stride": "i32",
        "slot_stride": "i32",
        "outer_stride": "i32",
        "inner": "i32",
        "inner_stride": "i32",
        "chunks": "i32",
    }
    return {name: kind for name, kind in arguments.items() if name not in absent}


def _paged(
    size: int, inner: int, label: str, *, aligned: bool = True, block_size: int = 16
) -> Variant:
    word = next(triton for torch, triton in WORDS.items() if torch.itemsize == size)
    # Elements of a run are adjacent, and a launch turns a 1 into a constant.
    constants: dict[str, object] = {"inner_stride": 1, "row_start_ptr": None}
    block, warps = tile(inner, size)
    if inner <= block:
        constants["chunks"] = 1
    return Variant(
        kernel=commit_kernel,
        signature=_signature(**constants) | {"data_ptr": "*i64"},
        constexprs={
            "WORD": word,
            "TABLE": True,
            "ALIGNED": aligned,
            "BLOCK_SIZE": block_size,
            "BLOCK": block,
        }
        | constants,
        num_warps=warps,
        label=f"{label} {8 * size} bit block={block_size}",
    )


def _rows(size: int, inner: int) -> Variant:
    word = next(triton for torch, triton in WORDS.items() if torch.itemsize == size)
    constants: dict[str, object] = {"inner_stride": 1, "slots_ptr": None}
    block, warps = tile(inner, size)
    return Variant(
        kernel=commit_kernel,
        signature=_signature(**constants) | {"data_ptr": f"*i{8 * size}"},
        constexprs={
            "WORD": word,
            "TABLE": False,
            "ALIGNED": False,
            "BLOCK_SIZE": 1,
            "BLOCK": block,
        }
        | constants,
        num_warps=warps,
        label=f"rows {8 * size} bit ragged",
    )


VARIANTS: tuple[Variant, ...] = (
    # 8 heads of 128 in 16 bit, 2 * 128 in 16 bit, and what is too odd for wide words.
    _paged(8, 256, "heads adjacent"),
    _paged(8, 64, "heads apart"),
    _paged(4, 2 * 65, "heads apart", aligned=False, block_size=528),
    _paged(2, 8 * 129, "heads adjacent"),
    _paged(1, 8 * 129, "heads adjacent"),
    # Hidden states or logits, then ids.
    _rows(8, 4096),
    _rows(4, 32001),
    _rows(2, 32001),
)
