"""Compile every kernel ahead of time, for every target, on a machine that has no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Variant:
    """One specialisation of a kernel, as a launch on a GPU would compile it.

    Attributes:
        kernel: the `triton.jit` function.
        signature: argument name to Triton type for every run-time argument, such as `"*i32"`,
            `"*bf16"`, `"i32"` or `"fp32"`.
        constexprs: argument name to value for every `tl.constexpr` argument, and for every
            argument whose value the launch specialises to a constant (`None`, 1).
        num_warps: warps per program.
        label: what tells the variant from its siblings, such as `"N=128 bf16"`.
    """

    kernel: Any
    signature: dict[str, str]
    constexprs: dict[str, object]
    num_warps: int
    label: str
