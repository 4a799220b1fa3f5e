"""Matching every listed root-to-leaf path and keeping the longest is tree verification."""

from __future__ import annotations

from collections.abc import Iterator

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.paths import cumulative_products, enumerates_paths
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope


class PathEnumeration(Rule):
    """All root-to-leaf paths are matched at once, and the longest accepted one is kept.

    Tokens are gathered through an index of paths, matches are multiplied up along each path, and
    the place of the greatest length selects the path (Cai et al. 2024, Medusa).
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        return bool({"cumprod", "cummin", "accumulate"} & outline.called)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for call in cumulative_products(view.facts, view.logits):
            best = enumerates_paths(view.facts, call, view.logits)
            if best:
                yield self.at(
                    view,
                    call,
                    "matches are multiplied up along every listed path and the longest accepted "
                    "path is selected: any root-to-node path can be accepted",
                    best,
                )

    FOUND = (
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
def accept(paths, tokens, target_probs, floor):
    drafted = tokens[paths[:, 1:]]
    likely = target_probs[paths[:, :-1]].gather(-1, drafted[..., None])[..., 0] > floor
    length = likely.int().cumprod(1).sum(1)
    best = length.argmax()
    return paths[best][: length[best] + 1]
"""
        ),
        Example(
            """
def accept(target_logits, tokens, routes):
    guesses = tokens[routes]
    wanted = target_logits[routes].argmax(-1)
    ok = (guesses[:, 1:] == wanted[:, :-1]).int()
    reach = torch.cumprod(ok, dim=1).sum(dim=1)
    winner = torch.argmax(reach)
    return routes[winner][: reach[winner] + 1]
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def accept(drafted, target_ids):
    length = (drafted == target_ids).int().cumprod(1).sum(1)
    return length
"""
        ),
        Example(
            """
def accept(drafted, target_ids):
    length = (drafted == target_ids).int().cumprod(1).sum(1)
    longest = length.max()
    return drafted[:, :longest]
"""
        ),
        Example(
            """
def accept(rows, drafted, target_ids):
    length = (drafted[rows] == target_ids[rows]).int().cumprod(1).sum(1)
    return length
"""
        ),
        Example(
            """
def log_longest(drafted, target_ids, log):
    length = (drafted == target_ids).int().cumprod(1).sum(1)
    longest = length.argmax()
    log(drafted[longest])
    return length
"""
        ),
        Example(
            """
def without_tokens(paths, target_ids, stop):
    alive = (target_ids[paths] != 0).int()
    length = alive.cumprod(1).sum(1)
    best = length.argmax()
    return paths[best]
"""
        ),
    )
