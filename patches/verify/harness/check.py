"""Checks of a unit: how many cases were tried, and the first one that went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Difference = str | None


def check(name: str, cases: Iterable[Callable[[], Difference]], what: str) -> dict[str, Any]:
    """Try every case until one is wrong or raises.

    Args:
        name: what is checked.
        cases: each says what is wrong, or None.
        what: what one case is, in the plural.
    """
    tried = 0
    for case in cases:
        tried += 1
        wrong = _wrong(case)
        if wrong is not None:
            detail = f"{what} number {tried}: {wrong}"
            return {"name": name, "passed": False, "detail": detail[:500]}
    return {"name": name, "passed": tried > 0, "detail": f"{tried} {what}"}


def _wrong(case: Callable[[], Difference]) -> Difference:
    try:
        return case()
    # Whatever a broken unit raises is the finding.
    except Exception as failure:  # noqa: BLE001
        return f"{type(failure).__name__}: {failure}"


def differ(found: object, expected: object) -> Difference:
    """None where both are equal, else both."""
    return None if found == expected else f"found {found}, expected {expected}"
