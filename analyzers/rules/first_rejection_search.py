"""A vectorised search for the first rejected position is a chain without a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import names, walk
from ..shapes.facts import Facts, comparison_sides
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_SEARCHES = frozenset({"max", "min", "argmax", "argmin", "nonzero"})
_SEARCH = m.Call(func=m.Attribute(attr=m.Name(m.MatchIfTrue(_SEARCHES.__contains__))))
_NEGATION = (
    m.UnaryOperation(operator=m.BitInvert() | m.Not())
    | m.Call(func=m.Attribute(attr=m.Name("logical_not") | m.Name("eq") | m.Name("ne")))
    | m.Comparison()
)
_ORDER = m.Comparison(
    comparisons=[
        m.ComparisonTarget(
            operator=m.LessThan() | m.LessThanEqual() | m.GreaterThan() | m.GreaterThanEqual()
        )
    ]
)
_ARANGE = m.Call(func=m.Attribute(attr=m.Name("arange")))


class FirstRejectionSearch(Rule):
    """The first rejected position of each row is searched, and everything behind it is dropped.

    `(accepted == 0).max(1).indices`, compared with a range of positions: one limit per request
    says how much of the chain survives. There is no loop, and still only a prefix can be accepted.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.LINEAR
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        placed = {"argmax", "argmin", "nonzero", "min"} & outline.called
        ordered = {ast.Lt, ast.LtE, ast.Gt, ast.GtE} & outline.operators
        searched = bool(placed) or "indices" in outline.names
        negated = {ast.Invert, ast.Not, ast.Eq, ast.NotEq} & outline.operators
        return searched and bool(ordered and negated) and "arange" in outline.called

    def find(self, view: FunctionView) -> Iterator[Finding]:
        facts = view.facts
        for bind in facts.binds:
            if _searches(facts, bind.value, view.logits) and _limits(facts, bind.targets):
                limit = min(bind.targets)
                yield self.at(
                    view,
                    bind.node,
                    f"`{limit}` is the first rejected position of each row, and positions are kept "
                    "only in front of it: only a prefix of one chain can be accepted",
                )

    FOUND = (
        Example(
            """
def accept(ok, drafted, target_ids):
    ok = drafted == target_ids
    k = drafted.shape[1]
    first = (ok == 0).max(1).indices
    places = torch.arange(k)[None]
    return torch.where(places < first[:, None], drafted, -1)
"""
        ),
        Example(
            """
def accept(drafted, target_ids):
    wrong = drafted != target_ids
    first = torch.argmax((~(drafted == target_ids)).int(), dim=1)
    keep = torch.arange(drafted.shape[1]) <= first.unsqueeze(1)
    return keep & wrong
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def greedy(target_logits):
    best = target_logits.argmax(-1)
    return best, torch.arange(4)
"""
        ),
        Example(
            """
def lengths(mask, target_logits):
    first = (mask == 0).max(1).indices
    return torch.arange(4) < first[:, None], target_logits
"""
        ),
        Example(
            """
def pick(wrong, target_logits):
    first = (~(wrong == target_logits)).max(1).indices
    return torch.arange(4) == first[:, None]
"""
        ),
        Example(
            """
def rank(target_logits, value):
    above = (target_logits > value).max(1).indices
    return above + torch.arange(4)
"""
        ),
    )


def _searches(facts: Facts, value: cst.BaseExpression, logits: frozenset[str]) -> bool:
    for node in walk(value):
        if not m.matches(node, _SEARCH):
            continue
        call = cst.ensure_type(node, cst.Call)
        searched = cst.ensure_type(call.func, cst.Attribute).value
        over = [searched] if not m.matches(searched, m.Name("torch")) else []
        over.extend(argument.value for argument in call.args)
        negated = any(m.matches(inner, _NEGATION) for part in over for inner in walk(part))
        if negated and _is_index(value, call) and facts.behind(over, None) & logits:
            return True
    return False


def _is_index(value: cst.BaseExpression, call: cst.Call) -> bool:
    """Whether the place of the extreme is taken, not the extreme itself."""
    function = cst.ensure_type(call.func, cst.Attribute).attr.value
    if function in {"argmax", "argmin", "nonzero"}:
        return True
    of_call = m.Attribute(value=m.MatchIfTrue(lambda node: node is call), attr=m.Name("indices"))
    if m.findall(value, of_call):
        return True
    # The least place among those where a condition holds.
    return function == "min" and bool(m.findall(call, _ARANGE))


def _limits(facts: Facts, found: frozenset[str]) -> bool:
    """Whether a range of positions is cut off at the position found."""
    for site in facts.compares:
        if not m.matches(site.node, _ORDER):
            continue
        sides = comparison_sides(site.node)
        for here, there in ((sides[0], sides[-1]), (sides[-1], sides[0])):
            if names(here) & found and any(
                m.matches(node, _ARANGE)
                for part in facts.expand(there, None, stop=found)
                for node in walk(part)
            ):
                return True
    return False
