"""A cumulative product of matches along the draft positions is a chain."""

from __future__ import annotations

from collections.abc import Iterator

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.paths import cumulative_products, may_choose
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class CumulativeMatch(Rule):
    """Matches are multiplied up along the draft positions, so one mismatch ends the row.

    A cumulative product (or minimum) over the draft dimension is the vectorised form of "until the
    first mismatch". Only a prefix of one chain can be accepted.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.LINEAR
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        return bool({"cumprod", "cummin", "accumulate"} & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for call in cumulative_products(view.facts, view.logits):
            if not may_choose(view.facts, call):
                yield self.at(
                    view,
                    call,
                    "matches are multiplied up along consecutive draft positions: only a prefix "
                    "of one chain can be accepted",
                )

    FOUND = (
        Example(
            """
def accept(drafted, target_ids):
    match = (drafted == target_ids).int()
    return torch.cumprod(match, dim=1).sum(1)
"""
        ),
        Example(
            """
def accept(drafted, target_ids):
    kept = (drafted == target_ids).long().cumprod(-1)
    return torch.where(kept.bool(), drafted, -1)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def sizes(shape, target_ids):
    return torch.cumprod(shape, 0), target_ids
"""
        ),
        Example(
            """
def accept(paths, drafted, target_ids):
    match = drafted[paths[:, 1:]] == target_ids[paths[:, :-1]]
    length = match.int().cumprod(1).sum(1)
    best = length.argmax()
    return paths[best], length
"""
        ),
        Example(
            """
def nucleus(target_probs, p):
    return target_probs.cumsum(-1) > p
"""
        ),
    )
