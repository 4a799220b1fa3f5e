"""Specialisations of the ancestor kernel: one word to sixty-four, small and full tiles."""

from __future__ import annotations

from ...compile import Variant
from .kernel import ancestors_kernel


def _ancestors(tile: int, words: int) -> Variant:
    # A launch turns an argument that is 1 into a constant.
    single: dict[str, object] = {"words": 1} if words == 1 else {}
    several: dict[str, str] = {} if words == 1 else {"words": "i32"}
    return Variant(
        kernel=ancestors_kernel,
        signature={
            "visible_ptr": "*i64",
            "depth_ptr": "*i32",
            "is_chain_ptr": "*i1",
            "parents_ptr": "*i32",
            "count_ptr": "*i32",
            "nodes": "i32",
        }
        | several,
        constexprs={"TILE": tile, "WORDS": words} | single,
        num_warps=2,
        label=f"tile={tile} words={words}",
    )


VARIANTS: tuple[Variant, ...] = tuple(
    _ancestors(tile, words)
    for tile, words in ((8, 1), (64, 1), (64, 2), (64, 4), (64, 8), (16, 64))
)
