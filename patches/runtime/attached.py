"""Whether calls still come by the hooks: another plug-in may have put functions of its own there.

It is told at start, by what is found under a hooked function's name, and not by its file: whatever
is in its place and cannot call the hooked one is refused. What cannot be told beforehand is noticed
in the step; see `guards`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

from .refusals import NO_TREES, Refused

# Functions and containers that are looked through for one that was replaced.
MOST = 500
PARTS = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hooked function was put."""

    module: str
    path: tuple[str, ...]
    hooked: Callable[..., Any]

    @property
    def name(self) -> str:
        """The function's name with its module and class."""
        return ".".join((self.module, *self.path))

    def owner(self) -> Any:
        """The module or the class that has the function; None where it cannot be reached."""
        found: Any = sys.modules.get(self.module)
        for part in self.path[:-1]:
            found = getattr(found, part, None)
        return found


PLACES: dict[str, Place] = {}
# Names of hooks in vLLM's files that this runtime has no handler for.
UNKNOWN: list[str] = []


def note(name: str, function: Callable[..., Any], hooked: Callable[..., Any]) -> None:
    """Know that a function is hooked under this name in this process."""
    path = tuple(function.__qualname__.split("."))
    PLACES[name] = Place(function.__module__, path, hooked)


def check_attached(needed: Iterable[str] = (), *objects: object) -> None:
    """Look at everything that is hooked in this process.

    Args:
        needed: names of hooks that have to be there.
        objects: whose classes may override what is hooked, or which may do so themselves.

    Raises:
        Refused: a hook is not there, or something that cannot call it is in its place.
    """
    if UNKNOWN:
        raise Refused(
            f"the patch has hooks that its runtime does not know: {', '.join(UNKNOWN)}",
            "run `ddtree patch --revert` on this environment, then `ddtree patch --apply`",
        )
    for name in needed:
        if name not in PLACES:
            raise Refused(f"nothing is hooked in as {name}", "run `ddtree patch --status`")
    for place in PLACES.values():
        owner = place.owner()
        if owner is None or "<locals>" in place.path:
            continue
        _check(place, inspect.getattr_static(owner, place.path[-1], None))
        for one in objects:
            if isinstance(owner, type) and isinstance(one, owner):
                _check(place, inspect.getattr_static(one, place.path[-1]))


def _check(place: Place, found: object) -> None:
    if not _reaches(found, place):
        function = inspect.unwrap(found) if callable(found) else found
        called = getattr(function, "__qualname__", type(found).__name__)
        raise Refused(
            f"{place.name} was replaced by {called} of {getattr(function, '__module__', None)}, "
            "which does not call what it replaces",
            f"leave out what replaces it (see VLLM_PLUGINS), or {NO_TREES}",
        )


def _reaches(found: object, place: Place) -> bool:
    """Whether a function may come to call the hooked one."""
    waiting: list[Any] = [found]
    seen: set[int] = set()
    while waiting and len(seen) < MOST:
        one = waiting.pop(0)
        if one is place.hooked:
            return True
        code = getattr(one, "__code__", None)
        # `super()` and a base class are asked for the function by its name.
        if code is not None and place.path[-1] in code.co_names:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            waiting += list(_parts(one))[:PARTS]
    return False


def _parts(one: Any) -> Iterator[Any]:
    """What a function, or what holds one, could call."""
    if isinstance(one, property):
        yield one.fget
    elif isinstance(one, staticmethod | classmethod):
        yield one.__func__
    elif isinstance(one, functools.partial):
        yield from (one.func, *one.args, *one.keywords.values())
    elif isinstance(one, MethodType):
        yield from (one.__func__, one.__self__)
    elif isinstance(one, FunctionType):
        yield getattr(one, "__wrapped__", None)
        yield from one.__defaults__ or ()
        yield from inspect.getclosurevars(one).nonlocals.values()
        yield from (one.__globals__.get(name) for name in one.__code__.co_names)
    elif isinstance(one, dict):
        yield from one.values()
    elif isinstance(one, list | tuple):
        yield from one
    elif callable(one):
        yield from getattr(one, "__dict__", {}).values()
