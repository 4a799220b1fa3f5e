"""A drafter that runs once per step and keeps one token per step drafts a chain."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import names, walk
from ..shapes.facts import Facts, Loop, Site
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_FORWARD = m.Call(
    func=m.Attribute(attr=m.Name("model") | m.Name("compute_logits") | m.Name("execute_model"))
)
_TOPK = m.Call(func=m.Attribute(attr=m.Name("topk")))
_FILL = m.Call(func=m.Attribute(attr=m.Name("fill_")))


class ChainDrafting(Rule):
    """The draft model runs once per consecutive step, and each run adds one token per request.

    The loop appends one column, writes it at its own step, or hands its step number to the
    routine that does; nothing carries a second candidate for a depth.
    """

    stage = Stage.DRAFTING
    supports = StageVerdict.LINEAR
    scope = Scope.DRAFTING

    def gate(self, outline: Outline) -> bool:
        ran = {"model", "compute_logits", "execute_model", "fill_"} & outline.called
        return outline.fors > 0 and bool(ran) and "topk" not in outline.called

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for loop in facts.loops:
            if loop.counts and (_collects(facts, loop) or _numbers(facts, loop)):
                yield self.at(
                    view,
                    loop.node,
                    "the drafter runs once per consecutive step and keeps one token per step: "
                    "the draft is a chain",
                )
                return

    FOUND = (
        Example(
            """
def propose(self, ids, steps):
    drafted = [ids]
    for _ in range(steps - 1):
        hidden = self.model(ids)
        ids = self.model.compute_logits(hidden).argmax(-1)
        drafted.append(ids)
    return torch.stack(drafted, dim=1)
"""
        ),
        Example(
            """
def draft(self, steps):
    for step in range(1, steps):
        logits = self.model.compute_logits(self.hidden)
        self.drafted[:, step] = logits.argmax(-1)
"""
        ),
        Example(
            """
def draft(self, steps, rows):
    for step in range(1, steps):
        self.current_step.fill_(step)
        self.advance(rows)
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def propose(self, logits, levels):
    drafted = []
    for level in range(levels):
        logits = self.model.compute_logits(self.hidden)
        drafted.append(torch.topk(logits, self.width[level]).indices)
    return drafted
"""
        ),
        Example(
            """
def warm(self, sizes):
    for size in range(4):
        self.model(size)
"""
        ),
        Example(
            """
def clear(self, rows):
    for row in range(rows):
        self.table[row].fill_(0)
"""
        ),
    )


def _collects(facts: Facts, loop: Loop) -> bool:
    """Whether a round runs the model and keeps its result, appended or at the loop's index."""
    runs = [site for site in facts.calls if loop in site.loops and m.matches(site.node, _FORWARD)]
    if not runs:
        return False
    for store in facts.stores:
        if loop not in store.loops or store.value is None:
            continue
        appended = not store.index_nodes
        at_step = bool(store.index & loop.index)
        if (appended or at_step) and _comes_from(facts, loop, store.value, runs):
            return True
    return False


def _comes_from(facts: Facts, loop: Loop, value: cst.CSTNode, runs: list[Site]) -> bool:
    """Whether a kept value depends on the round's model run, through whatever it updates."""
    inside = facts.inside(loop)
    made = {name for bind in inside for name in bind.targets if _holds(bind.value, runs)}
    made |= {name for bind in inside if names(bind.value) & made for name in bind.targets}
    if facts.behind([value], loop) & made:
        return True
    return any(_holds(part, runs) for part in facts.expand(value, loop))


def _holds(value: cst.CSTNode, runs: list[Site]) -> bool:
    return any(node is run.node for run in runs for node in walk(value))


def _numbers(facts: Facts, loop: Loop) -> bool:
    """Whether a round writes its number to the device and calls a routine of its own class."""
    filled = any(
        loop in site.loops
        and m.matches(site.node, _FILL)
        and names(cst.ensure_type(site.node, cst.Call).args[0].value) & loop.index
        for site in facts.calls
    )
    own = any(
        loop in site.loops and m.matches(site.node, m.Call(func=m.Attribute(value=m.Name("self"))))
        for site in facts.calls
    )
    return filled and own
