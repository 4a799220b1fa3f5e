"""The build's specialisations: id types, with and without budgets, small and large trees."""

from __future__ import annotations

from ...compile import Variant
from .kernel import build_kernel

SIGNATURE = {
    "tokens_ptr": "*i32",
    "parents_ptr": "*i32",
    "depth_ptr": "*i32",
    "count_ptr": "*i32",
    "logp_ptr": "*fp32",
    "nodes": "i32",
    "positions": "i32",
    "candidates": "i32",
    "max_siblings": "i32",
}


def _variant(
    rows: int, candidates: int, integer: str, *, ragged: bool, spine: bool, ranked: bool
) -> Variant:
    budgets: dict[str, str] = {"budgets_ptr": "*i32"} if ragged else {}
    absent: dict[str, object] = {} if ragged else {"budgets_ptr": None}
    return Variant(
        kernel=build_kernel,
        signature=SIGNATURE | {"ids_ptr": f"*{integer}"} | budgets,
        constexprs={"ROWS": rows, "CANDIDATES": candidates, "SPINE_FIRST": spine, "RANKED": ranked}
        | absent,
        num_warps=1 if rows <= 256 else 4,
        label=f"rows={rows} K={candidates} {integer}"
        + (" ragged" if ragged else "")
        + (" spine" if spine else "")
        + (" ranked" if ranked else ""),
    )


VARIANTS: tuple[Variant, ...] = (
    _variant(2, 1, "i32", ragged=False, spine=False, ranked=False),
    _variant(32, 16, "i32", ragged=True, spine=False, ranked=True),
    _variant(128, 64, "i32", ragged=True, spine=False, ranked=True),
    _variant(128, 64, "i64", ragged=True, spine=True, ranked=False),
    _variant(256, 64, "i32", ragged=False, spine=True, ranked=False),
    _variant(512, 64, "i64", ragged=True, spine=False, ranked=False),
    _variant(2048, 1024, "i64", ragged=True, spine=True, ranked=False),
)
