"""Rules applied to what an engine path reaches: findings with the calls that lead to them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from .engines import Engine
from .program.dataflow import follow_logits
from .program.module import FunctionNode
from .program.program import FunctionRef, Program
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .result import Call, Stage, StageVerdict
from .rules import Finding, Rule, Scope, all_rules
from .shapes.view import FunctionView

# Preparing a step's inputs is a few calls deep, and stays in the package of the runner.
FORWARD_DEPTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    """A finding in a function, with the rule that made it and the calls that reach it."""

    rule: Rule
    function: FunctionRef
    finding: Finding
    calls: tuple[Call, ...]


@dataclass(slots=True)
class Examiner:
    """Applies rules to functions, and keeps what libcst could not parse."""

    program: Program
    receivers: Receivers
    failures: dict[str, str] = field(default_factory=dict)

    def engine(self, engine: Engine) -> list[Hit]:
        """Every finding on an engine path.

        What only a tree verifier needs (a mask and a commit of its own) is looked for only where
        one was found: a chain's accepted prefix is contiguous, and its mask is causal.
        """
        sampling = Reach(self.program, self.receivers)
        sampling.run(engine.sampling)
        forward = Reach(
            self.program, self.receivers, FORWARD_DEPTH, self.program.package_of(engine.classes[0])
        )
        forward.run(engine.forward)
        hits = self._sampling(engine, sampling)
        if supports(hits, Stage.VERIFICATION, StageVerdict.TREE):
            hits += self._reached([*sampling.functions, *forward.functions], Scope.ATTENTION)
            hits += self._reached(sampling.functions, Scope.COMMIT)
        hits += self._reached(forward.functions, Scope.FORWARD)
        return _unique(hits)

    def _sampling(self, engine: Engine, sampling: Reach) -> list[Hit]:
        """Verification and drafting.

        Engines that sample first and verify tokens show in the wider region only. There a tree
        counts, and a chain only where the narrow region showed nothing: drafters, too, are handed
        tokens and look for prefixes.
        """
        owners = {cls.key for cls in engine.classes}
        logits = follow_logits(sampling, self.receivers, engine.classes)
        hits: list[Hit] = []
        for reached, names in logits.tainted.items():
            hits += self.apply(Scope.LOGITS, reached.function, reached.calls(), names)
        narrow = bool(hits)
        wide = follow_logits(sampling, self.receivers, engine.classes, decisions=True)
        only = StageVerdict.TREE if narrow else None
        for reached, names in wide.tainted.items():
            hits += self.apply(Scope.LOGITS, reached.function, reached.calls(), names, only)
        for reached in sampling.functions:
            owner = reached.function.owner
            if reached not in logits and (owner is None or owner.key not in owners):
                hits += self.apply(Scope.DRAFTING, reached.function, reached.calls())
        return hits

    def _reached(self, functions: Iterable[Reached], scope: Scope) -> list[Hit]:
        return [
            hit
            for reached in functions
            for hit in self.apply(scope, reached.function, reached.calls())
        ]

    def apply(
        self,
        scope: Scope,
        function: FunctionRef,
        calls: tuple[Call, ...],
        logits: Iterable[str] = (),
        only: StageVerdict | None = None,
    ) -> list[Hit]:
        """The findings of the rules of one scope in one function; `only` those for a verdict."""
        outline = self.receivers.survey(function).outline
        view: FunctionView | None = None
        hits: list[Hit] = []
        for rule in all_rules():
            if rule.scope is not scope or only not in {None, rule.supports}:
                continue
            if rule.gate(outline):
                view = view or FunctionView(
                    function.module.source, function.node, function.symbol, frozenset(logits)
                )
                found = self._found(rule, view, function)
                hits += [Hit(rule, function, finding, calls) for finding in found]
        return hits

    def _found(self, rule: Rule, view: FunctionView, function: FunctionRef) -> list[Finding]:
        try:
            return list(rule.find(view))
        except cst.ParserSyntaxError as error:
            reason = f"libcst cannot parse {view.symbol}: {error.message}"
            self.failures[function.module.path] = reason
            return []


def _unique(hits: Iterable[Hit]) -> list[Hit]:
    """Each place once per rule: a method may be reached through several receivers."""
    found: dict[tuple[str, str, int], Hit] = {}
    for hit in hits:
        found.setdefault((hit.rule.name, hit.function.module.path, hit.finding.line), hit)
    return list(found.values())


def supports(hits: Iterable[Hit], stage: Stage, verdict: StageVerdict) -> list[Hit]:
    """The hits that argue for a verdict on a stage."""
    return [hit for hit in hits if hit.rule.stage is stage and hit.rule.supports is verdict]


def functions_of(tree: ast.AST) -> Iterator[FunctionNode]:
    """Every function of a module, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
