"""The walk's specialisations: target types, padded and ragged rows, small and large trees."""

from __future__ import annotations

from ...compile import Variant
from .kernel import walk_kernel, walk_logits_kernel

TREE = {
    "perm_ptr": "*i32",
    "accepted_ptr": "*i32",
    "bonus_row_ptr": "*i32",
    "tokens_ptr": "*i32",
    "parents_ptr": "*i32",
    "count_ptr": "*i32",
    "nodes": "i32",
}


def _walk(rows: int, integer: str, *, ragged: bool) -> Variant:
    target = {"target_ptr": f"*{integer}", "bonus_ptr": f"*{integer}"}
    start: dict[str, str] = {"row_start_ptr": "*i32"} if ragged else {}
    absent: dict[str, object] = {} if ragged else {"row_start_ptr": None}
    return Variant(
        kernel=walk_kernel,
        signature=TREE | target | start,
        constexprs={"ROWS": rows} | absent,
        num_warps=1 if rows <= 256 else 4,
        label=f"rows={rows} {integer} {'ragged' if ragged else 'padded'}",
    )


def _walk_logits(rows: int, number: str) -> Variant:
    logits = {"logits_ptr": f"*{number}", "vocabulary": "i32", "line_stride": "i32"}
    return Variant(
        kernel=walk_logits_kernel,
        signature=TREE | logits | {"bonus_ptr": "*i32", "row_start_ptr": "*i32"},
        constexprs={"ROWS": rows, "BLOCK": 4096},
        num_warps=8,
        label=f"rows={rows} {number} ragged",
    )


VARIANTS: tuple[Variant, ...] = (
    _walk(16, "i64", ragged=False),
    _walk(128, "i32", ragged=False),
    _walk(128, "i32", ragged=True),
    _walk(256, "i64", ragged=True),
    _walk(1024, "i64", ragged=True),
    _walk_logits(16, "bf16"),
    _walk_logits(128, "fp32"),
    _walk_logits(256, "fp16"),
)
