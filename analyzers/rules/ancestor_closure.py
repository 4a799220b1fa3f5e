"""A node survives when all of its ancestors match: the mask itself decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..program.survey import Outline
from ..result import Stage, StageVerdict
from ..shapes.expressions import walk
from ..shapes.matches import is_looked_up, matches_at
from ..shapes.view import FunctionView
from .rule import Example, Finding, Rule, Scope

_ALL = frozenset({"all", "amin", "prod"})
_ANY = frozenset({"any", "amax"})
_EXCEPT = m.UnaryOperation(operator=m.BitInvert()) | m.Call(
    func=m.Attribute(attr=m.Name("logical_not"))
)
_TRUE = m.Name("True") | m.Integer("1")
_OPENED_FILL = m.Call(
    func=m.Attribute(attr=m.Name("masked_fill")), args=[m.Arg(value=_EXCEPT), m.Arg(value=_TRUE)]
)
_NEW_AXIS = m.Subscript(
    slice=[
        m.ZeroOrMore(),
        m.SubscriptElement(slice=m.Index(value=m.Name("None"))),
        m.ZeroOrMore(),
    ]
) | m.Call(func=m.Attribute(attr=m.Name("unsqueeze") | m.Name("expand_dims")))


class AncestorClosure(Rule):
    """A node is accepted when the matches of all its ancestors hold, by one reduction.

    Matches of drafted tokens with the target's token at each node's parent are spread over a
    matrix of ancestors (`matched[:, None] | ~ancestors`) and reduced by `all`. No loop is needed.
    """

    stage = Stage.VERIFICATION
    supports = StageVerdict.TREE
    scope = Scope.LOGITS

    def gate(self, outline: Outline) -> bool:
        opened = ast.Invert in outline.operators or {"where", "logical_not"} & outline.called
        return bool((_ALL | _ANY) & outline.called and opened)

    def find(self, view: FunctionView) -> Iterator[Finding]:
        for site in view.facts.calls:
            call = cst.ensure_type(site.node, cst.Call)
            if _closes(view, call):
                made = (bind.targets for bind in view.facts.binds if call in walk(bind.value))
                yield self.at(
                    view,
                    call,
                    "a node survives when the matches of all its ancestors hold: any root-to-node "
                    "path can be accepted",
                    frozenset().union(*made),
                )

    FOUND = (
        Example(
            """
def accept(parents, ancestors, tokens, target_ids):
    hit = tokens == target_ids.gather(1, parents)
    return (hit[:, None, :] | ~ancestors).all(dim=-1)
"""
        ),
        Example(
            """
def accept(parents, ancestors, tokens, target_ids):
    missed = tokens != target_ids[parents]
    return ~(ancestors & missed.unsqueeze(0)).any(dim=-1)
"""
        ),
        Example(
            """
def survive(ancestors, held_hits, target_ids):
    return torch.where(ancestors, held_hits[:, None], True).all(dim=-1), target_ids
"""
        ),
    )
    NOT_FOUND = (
        Example(
            """
def accept(valid, tokens, target_ids):
    hit = tokens == target_ids
    return (hit | ~valid).all(dim=-1)
"""
        ),
        Example(
            """
def masked(rows, tokens, mask, target_ids):
    same = tokens == tokens.gather(1, rows)
    return (same | ~mask).all(dim=-1), target_ids
"""
        ),
        Example(
            """
def whole_rows(valid, rows, tokens, target_ids):
    hit = tokens == target_ids.gather(1, rows)
    return (hit | ~valid).all(dim=-1)
"""
        ),
        Example(
            """
def by_position(ancestors, tokens, target_ids):
    hit = tokens[:, 1:] == target_ids[:, :-1]
    return (hit[:, None, :] | ~ancestors).all(dim=-1)
"""
        ),
        Example(
            """
def without_tokens(parents, ancestors, target_probs, floor):
    likely = target_probs.gather(1, parents) >= floor
    return (likely[:, None, :] | ~ancestors).all(dim=-1)
"""
        ),
        Example(
            """
def beside(parents, ancestors, tokens, target_ids, live):
    hit = tokens == target_ids.gather(1, parents)
    return (live[:, None, :] | ~ancestors).all(dim=-1), hit
"""
        ),
    )


def _closes(view: FunctionView, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute):
        return False
    name, reduced = call.func.attr.value, call.func.value
    if name not in _ALL | _ANY:
        return False
    parts = view.facts.expand(reduced, None)
    spread = any(m.matches(node, _NEW_AXIS) for part in parts for node in walk(part))
    opened = _opened if name in _ALL else _excluded
    return spread and any(
        _are_matches(view, side) for part in parts for node in walk(part) for side in opened(node)
    )


def _opened(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What has to hold at the ancestors: `hit | ~ancestors`, `where(ancestors, hit, True)`."""
    if isinstance(node, cst.BinaryOperation) and m.matches(node.operator, m.BitOr()):
        for here, there in ((node.left, node.right), (node.right, node.left)):
            if m.matches(there, _EXCEPT):
                yield here
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        arguments = [argument.value for argument in node.args]
        if node.func.attr.value == "where" and len(arguments) == 3:
            if m.matches(arguments[2], _TRUE):
                yield arguments[1]
        elif m.matches(node, _OPENED_FILL):
            yield node.func.value


def _excluded(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What must not hold at any ancestor: `ancestors & ~hit`."""
    if isinstance(node, cst.BinaryOperation) and m.matches(node.operator, m.BitAnd()):
        yield from (node.left, node.right)


def _are_matches(view: FunctionView, side: cst.BaseExpression) -> bool:
    """Whether a value is where drafted tokens are the target's at a looked-up place."""
    facts = view.facts
    if facts.behind([side], None) & view.held():
        return True
    return any(
        is_looked_up(facts, index)
        for part in facts.expand(side, None)
        for node in walk(part)
        for load in matches_at(facts, node, view.logits)
        for index in load.index_nodes
    )
