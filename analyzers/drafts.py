"""What drafts for an engine: what it calls apart from its sampler, and whose result it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .program.dataflow import Region
from .program.program import ClassRef
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .program.results import follow


class Drafters:
    """The functions of a step that may draft.

    A drafter is called from the engine's own methods, by way of functions that are not given the
    target's logits: a beam step of a sampler that is given them proposes nothing to a verifier.
    """

    def __init__(
        self, reach: Reach, receivers: Receivers, logits: Region, engine: Iterable[ClassRef]
    ) -> None:
        self._reach, self._receivers = reach, receivers
        owners = {cls.key for cls in engine}
        self._own = [
            reached
            for reached in reach.functions
            if reached.function.owner is not None and reached.function.owner.key in owners
        ]
        self._logits = logits
        self._known = frozenset(self._below())

    def __iter__(self) -> Iterator[Reached]:
        """The functions, nearest first."""
        return (reached for reached in self._reach.functions if reached in self._known)

    def _below(self) -> Iterator[Reached]:
        seen = set(self._own)
        waiting = list(self._own)
        while waiting:
            for edge in self._reach.edges[waiting.pop()]:
                if edge.target not in seen and edge.target not in self._logits:
                    seen.add(edge.target)
                    waiting.append(edge.target)
                    yield edge.target

    def keeps(self, drafting: Reached) -> bool:
        """Whether what a function drafts goes to what verifies, or back to the engine for that."""
        drafts = follow(self._reach, self._receivers, [drafting])
        if any(own in drafts.names or own in drafts.givers for own in self._own):
            return True
        return any(one in self._logits for one in drafts.names)
