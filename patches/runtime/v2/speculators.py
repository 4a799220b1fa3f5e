"""Whether a V2 speculator takes its tokens where the runtime sees its candidates."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

from ..refusals import NO_TREES, Refused

# The function that is hooked; what calls it has its name among the names it uses.
HOOKED = "sample_draft"


def check_speculator(speculator: Any) -> None:
    """Judge the speculator of a V2 `GPUModelRunner`.

    Raises:
        Refused: none of its functions comes by the hook, so no tree would ever be made of it.
    """
    kind = type(speculator)
    if not any(HOOKED in code.co_names for code in _used(kind)):
        raise Refused(
            f"{kind.__name__} takes its tokens without {HOOKED}, so its candidates are not seen",
            f"take a drafter of another architecture, or {NO_TREES}",
        )


def _used(kind: type) -> Iterator[CodeType]:
    """The functions that an object of the class has; of replaced ones, those that are called."""
    for name in dir(kind):
        if name == HOOKED:
            continue
        for base in kind.__mro__:
            function = inspect.unwrap(base.__dict__.get(name, None))
            code = getattr(function, "__code__", None)
            if code is None:
                continue
            yield code
            if "super" not in code.co_names:
                break
