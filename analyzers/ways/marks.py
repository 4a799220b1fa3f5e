"""What is known of a value: whether a verifier let it through, or the target alone said it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """What made a raw value: a call, or the expression itself; `opaque` if nothing tells how."""

    file: str
    line: int
    text: str
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """What is known of a value; neither raw nor verified is one that the target has no part in."""

    verified: bool = False
    raw: frozenset[Way] = frozenset()

    def __or__(self, other: Mark) -> Mark:
        return Mark(self.verified or other.verified, self.raw | other.raw)

    def __bool__(self) -> bool:
        return self.verified or bool(self.raw)

    @property
    def settled(self) -> bool:
        """Whether it is verified, whichever way it came."""
        return self.verified and not self.raw


NOTHING = Mark()
VERIFIED = Mark(verified=True)


def mixed(marks: Iterable[Mark]) -> Mark:
    """The mark of what is computed from several values, or holds them."""
    found = NOTHING
    for mark in marks:
        if mark.settled:
            return VERIFIED
        found |= mark
    return found


def decided(mark: Mark) -> Mark:
    """What a verifier's outcome selected: the target's bare words count as decided."""
    kept = frozenset(way for way in mark.raw if way.opaque)
    return replace(mark, raw=kept, verified=mark.verified or bool(mark.raw - kept))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a function gives: what it returns, writes into parameters, and keeps.

    `returned` holds every `return` with its mark; `kept` what is stored in objects; `chosen` what
    chose, of what was drafted, the part that a verifier is shown.
    """

    returned: tuple[tuple[ast.AST, Mark], ...] = ()
    written: Mapping[str, Mark] = field(default_factory=dict)
    kept: tuple[tuple[ast.AST, Mark], ...] = ()
    chosen: frozenset[Way] = frozenset()

    @property
    def value(self) -> Mark:
        """What a call gives."""
        found = NOTHING
        for _, mark in self.returned:
            found |= mark
        return found
