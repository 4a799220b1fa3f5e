"""What the run of every function has to know of all the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..program.reach import Reach, Reached
from ..program.receivers import Receivers
from .marks import Mark, Outcome


@dataclass(slots=True)
class Code:
    """What the interpretation of every function has to know.

    Args:
        run: runs one function for what its parameters hold, so many calls deep.
        reach: which call leads where.
        receivers: opens the functions' scopes.
        names: the names that hold what the target said, by function.
        handed: the parameters that callers hand it.
        attributes: those that do so in instances of some class.
        engine: the keys of the engine's own classes.
        deciding: the functions in which a known verifier decides, or that call it.
        found: the lines of the verifiers that rules found, by function.
        absent: the branches in which nothing was drafted.
    """

    run: Callable[[Code, Reached, Mapping[str, Mark], int], Outcome]
    reach: Reach
    receivers: Receivers
    names: Mapping[Reached, set[str]]
    handed: Mapping[Reached, set[str]]
    attributes: frozenset[str]
    engine: frozenset[tuple[str, str]]
    deciding: frozenset[Reached]
    found: Mapping[int, list[range]]
    absent: frozenset[int] = frozenset()
    # The nodes of the deciding functions, by identity.
    nodes: frozenset[int] = field(init=False)
    # The parameters into which a deciding function writes what a verifier let through.
    settled: dict[Reached, frozenset[str]] = field(default_factory=dict)
    _summaries: dict[tuple[Reached, tuple[tuple[str, Mark], ...]], Outcome] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.nodes = frozenset(id(reached.function.node) for reached in self.deciding)

    def forget(self) -> None:
        """Run every function anew."""
        self._summaries.clear()

    def is_own(self, reached: Reached) -> bool:
        """Whether a function is a method of the engine itself, whose logits are the target's."""
        owner = reached.function.owner
        return owner is not None and owner.key in self.engine

    def outcome(self, reached: Reached, given: Mapping[str, Mark], depth: int = 0) -> Outcome:
        """What a function returns and writes, for what its parameters hold."""
        key = (reached, tuple(sorted((name, mark) for name, mark in given.items() if mark)))
        if key not in self._summaries:
            # Entered before it is run, so that recursion ends.
            self._summaries[key] = Outcome()
            self._summaries[key] = self.run(self, reached, given, depth)
        return self._summaries[key]
