"""What the runner that is working right now has in progress, for hooks that see no runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .capture import Capture
    from .step import Step


class Active:
    """The work in progress of this process; a worker process runs one model at a time.

    Attributes:
        masked: the step whose target forward runs, while its rows are trees.
        unwalked: the step whose rows are trees, until the walk has decided it.
        decided: the step whose tokens are being sampled, once its walk is done.
        capture: takes the drafter's candidates while it drafts.
        depth: the drafter's, while a step's tokens are being sampled, trees or not.
    """

    __slots__ = ("capture", "decided", "depth", "masked", "unwalked")

    def __init__(self) -> None:
        """Start with nothing in progress."""
        self.masked: Step | None = None
        self.unwalked: Step | None = None
        self.decided: Step | None = None
        self.capture: Capture | None = None
        self.depth: int | None = None

    def clear(self) -> None:
        """Forget a step; a drafter's forward must not see the target's tree."""
        self.masked = None
        self.unwalked = None
        self.decided = None
        self.capture = None
        self.depth = None


ACTIVE = Active()
