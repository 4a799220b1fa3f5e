"""Branches in which nothing was drafted: whatever is sampled there needs no verifier."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..program.arguments import parameters_of
from ..program.opaque import computes
from ..program.reach import Reached
from ..program.results import follow
from ..program.taint import callee, holds_logits
from .code import Code

_NONE = (ast.Is, ast.Eq)
_SOME = (ast.IsNot, ast.NotEq, ast.Gt)


def absent_branches(code: Code, reached: Reached, *, partly: bool) -> Iterator[int]:
    """The first statements, by identity, of the branches in which nothing can have been drafted.

    A branch is one of these if it is taken only where something is missing that a verifier is
    handed in this function, or the verifier itself: `if metadata is None: return sample(logits)`.
    With `partly`, so are those where a part of it is nothing (`if batch.drafts == 0`) and nothing
    that runs there compares the rest of it with what the target said.
    """
    handed = _handed_to_verifiers(code, reached)
    if not handed:
        return
    for node in ast.walk(reached.function.node):
        if isinstance(node, ast.If):
            for branch, wanted in ((node.body, True), (node.orelse, False)):
                missing = _Missing(handed).of(node.test, wanted=wanted) if branch else None
                if missing is None or (missing and not partly):
                    continue
                if all(_only_samples(code, reached, branch, whole) for whole in missing):
                    yield id(branch[0])


def _handed_to_verifiers(code: Code, reached: Reached) -> frozenset[str]:
    """The expressions that calls of verifiers are given, and those that name the verifiers."""
    sites = {id(edge.site) for edge in code.reach.edges[reached] if edge.target in code.deciding}
    scope = code.receivers.scope(reached.function, reached.receiver)
    found: set[str] = set()
    for call in scope.mentions.calls:
        if id(callee(call)) in sites:
            found.add(ast.unparse(callee(call)))
            found.update(ast.unparse(value) for value in call.args)
            found.update(ast.unparse(word.value) for word in call.keywords)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Missing:
    """Reads conditions; `handed` are the expressions of which one has to be missing."""

    handed: frozenset[str]

    def of(self, test: ast.expr, *, wanted: bool) -> frozenset[str] | None:
        """None if a condition that is as `wanted` does not say that something is missing.

        Else the handed objects of which only a part is known to be nothing.
        """
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.of(operand, wanted=not wanted)
            case ast.BoolOp(op=op, values=values):
                parts = [self.of(value, wanted=wanted) for value in values]
                found = [part for part in parts if part is not None]
                # Both of `a and b` hold where it does; only one of `a or b` need.
                if isinstance(op, ast.And) is wanted:
                    return min(found, key=len, default=None)
                return frozenset().union(*found) if len(found) == len(parts) else None
            case ast.Compare(left=left, ops=[op], comparators=[right]) if _is_nothing(right):
                if not isinstance(op, _NONE + _SOME) or isinstance(op, _NONE) is not wanted:
                    return None
                return self._handed(left)
        return None if wanted else self._handed(test)

    def _handed(self, node: ast.expr) -> frozenset[str] | None:
        """Whether a verifier is given a value, or parts of it; or what it is only a part of."""
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) == "len":
            return self._handed(node.args[0])
        text = ast.unparse(node)
        if text in self.handed or any(one.startswith(f"{text}.") for one in self.handed):
            return frozenset()
        if isinstance(node, ast.Attribute) and (whole := ast.unparse(node.value)) in self.handed:
            return frozenset({whole})
        return None


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value == 0)


def _only_samples(code: Code, reached: Reached, branch: Iterable[ast.stmt], whole: str) -> bool:
    """Whether nothing in a branch puts parts of an object beside what the target said."""
    inside = {id(node) for statement in branch for node in ast.walk(statement)}
    edges = [edge for edge in code.reach.edges[reached] if id(edge.site) in inside]
    scope = code.receivers.scope(reached.function, reached.receiver)
    calls = {id(callee(call)): call for call in scope.mentions.calls}
    seeds: dict[Reached, set[str]] = {}
    for edge in edges:
        call = calls.get(id(edge.site))
        if call is not None:
            seeds.setdefault(edge.target, set()).update(parameters_of(call, edge.target, {whole}))
    known = {id(edge.site) for edge in edges}
    unknown = [call for site, call in calls.items() if site in inside and site not in known]
    if any(whole in _names(call) for call in unknown if not computes(code.receivers, scope, call)):
        return False
    below = code.reach.below(seeds)
    held = follow(code.reach, code.receivers, held=seeds, within=below).names
    return not any(_compares(code, one, held[one]) for one in below if one in held)


def _names(call: ast.Call) -> set[str]:
    values = [*call.args, *(word.value for word in call.keywords)]
    return {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}


def _compares(code: Code, reached: Reached, drafted: set[str]) -> bool:
    """Whether a function compares some names with what the target said, or hands both to others."""
    said = code.names.get(reached)
    if not said:
        return False
    scope = code.receivers.scope(reached.function, reached.receiver)
    known = {id(edge.site) for edge in code.reach.edges[reached]}
    for call in scope.mentions.calls:
        if id(callee(call)) not in known and not computes(code.receivers, scope, call):
            values = [*call.args, *(word.value for word in call.keywords)]
            if _both(values, said, drafted):
                return True
    compared = (node for node in ast.walk(reached.function.node) if isinstance(node, ast.Compare))
    return any(
        isinstance(node.ops[0], ast.Eq | ast.NotEq)
        and _both([node.left, *node.comparators], said, drafted)
        for node in compared
    )


def _both(values: Iterable[ast.expr], said: set[str], drafted: set[str]) -> bool:
    values = list(values)
    of_target = [value for value in values if holds_logits(value, said)]
    return bool(of_target) and any(
        holds_logits(value, drafted) for value in values if value not in of_target
    )
