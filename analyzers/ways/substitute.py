"""Code that stands in the place of other code and cannot be followed."""

from __future__ import annotations

from dataclasses import dataclass

from ..program.program import ClassRef, FunctionRef, ModuleRef
from .marks import Way


@dataclass(frozen=True, slots=True, eq=False)
class Substitute:
    """Something that a plug-in replaces by what cannot be followed.

    `replaced` is the function, the class or the module of which it is a part; None if it is only
    known by its `name`.
    """

    name: str
    replaced: ClassRef | FunctionRef | ModuleRef | None
    way: Way
