"""Who is told, in a sentence at a time, what is being done."""

from __future__ import annotations

# Python 3.8, which reads this at the other end, subscripts no other one.
from typing import Callable  # noqa: UP035

Say = Callable[[str], None]


def silent(sentence: str) -> None:
    """Tell nobody."""
    del sentence
