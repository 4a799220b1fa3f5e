"""Time several forms of one computation side by side, interleaved in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One computation in several forms that give the same result.

    Attributes:
        unit: the unit's folder name under `kernels/tree`.
        label: the sizes, such as `"R=64 N=64 D=7 K=64"`.
        forms: form name to a call without arguments; the first form is the baseline, and the
            inputs are made before the call so that only the computation is timed.
    """

    unit: str
    label: str
    forms: dict[str, Callable[[], object]]
