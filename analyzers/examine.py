"""Rules applied to what an engine path reaches: findings with the calls that lead to them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial

import libcst as cst

from .conditions import condition_of
from .consequences import tree_commits, tree_masks, wrapped_attention
from .drafts import Drafters
from .engines import Engine
from .kinds import Held, Matches
from .plugins.attach import Attached, attach
from .plugins.layers import layer_wraps
from .program.dataflow import Region, follow_logits
from .program.module import FunctionNode
from .program.opaque import opaque_decorators
from .program.program import ClassRef, FunctionRef, Program
from .program.reach import Reach, Reached
from .program.receivers import Receivers
from .result import Call, Stage, StageVerdict
from .rules import Finding, Rule, Scope, all_rules
from .shapes.view import FunctionView
from .ways.drafters import drafted_beside
from .ways.marks import Way
from .ways.unexplained import unexplained

# Preparing a step's inputs is a few calls deep, and stays in the package of the runner.
FORWARD_DEPTH = 3
# What stands in the place of a rule's name for a call that no rule can look into.
OPAQUE = "opaque-call"


# Scopes whose rules ask for other values than those that are followed, wherever they look.
_ASKS_BESIDE = frozenset({Scope.MASKED, Scope.COMMIT})
_Key = tuple[str, int, frozenset[str], frozenset[str] | None]


@dataclass(frozen=True, slots=True)
class Hit:
    """A finding as plain data: the rule that made it, its place, and the calls that reach it."""

    rule: str
    stage: Stage
    supports: StageVerdict
    file: str
    symbol: str
    finding: Finding
    quote: str
    calls: tuple[Call, ...]
    # When it does not run although it is reached; empty if no such condition is known.
    condition: str = ""


def make_hit(rule: Rule, reached: Reached, finding: Finding) -> Hit:
    """Take what a report needs out of the parsed program."""
    function = reached.function
    return Hit(
        rule.name,
        rule.stage,
        rule.supports,
        function.module.path,
        function.symbol,
        finding,
        function.module.line(finding.line),
        reached.calls(),
        condition_of(reached),
    )


@dataclass(slots=True)
class Examiner:
    """Applies rules to functions, and keeps what libcst could not parse."""

    program: Program
    receivers: Receivers
    # The files of the engine that an edit made import a package beside it.
    edited: tuple[str, ...] = ()
    # Packages that it imports and that are not there.
    missing: frozenset[str] = frozenset()
    # What plug-ins changed in this program.
    attached: Attached = field(default_factory=Attached)
    failures: dict[str, str] = field(default_factory=dict)
    # A method is reached through many receivers, and the trees of libcst are large: findings are
    # kept, and of the trees only the last.
    _findings: dict[_Key, list[Finding]] = field(default_factory=dict)
    _view: FunctionView | None = None

    def engine(self, engine: Engine) -> list[Hit]:
        """Every finding on an engine path.

        A mask of its own is looked for only where a tree is drafted or verified, and a commit only
        where one is verified: a chain's mask is causal, and its accepted prefix is contiguous.
        """
        sampling = Reach(self.program, self.receivers)
        sampling.run(engine.sampling)
        logits = follow_logits(sampling, self.receivers, engine.classes)
        runners = [*self._overriding(engine, logits), *engine.brought]
        if runners:
            engine = engine.with_runners(self.program, runners)
            sampling.run(engine.sampling)
            logits = follow_logits(sampling, self.receivers, engine.classes)
        package = engine.classes[0].module.package
        forward = Reach(self.program, self.receivers, FORWARD_DEPTH, package)
        forward.run(engine.forward)
        hits = self._sampling(engine, sampling, logits)
        walks = supports(hits, Stage.VERIFICATION, StageVerdict.TREE)
        if walks or supports(hits, Stage.DRAFTING, StageVerdict.TREE):
            hits += self._wider(engine, walks)
        return unique([*hits, *self._first(forward.functions, Scope.FORWARD)])

    def _overriding(self, engine: Engine, logits: Region) -> list[ClassRef]:
        """The runners of platforms that handle logits in a way of their own."""
        owners = {cls.key for cls in engine.classes}
        names = {
            one.function.node.name
            for one in logits.tainted
            if one.function.owner is not None and one.function.owner.key in owners
        }
        return [
            cls
            for cls in engine.runners
            if any(
                isinstance(node, ast.FunctionDef) and node.name in names
                for one in self.program.ancestry(cls)
                for node in one.node.body
                if one.key not in owners
            )
        ]

    def _sampling(self, engine: Engine, sampling: Reach, logits: Region) -> list[Hit]:
        """Verification and drafting.

        Engines that sample first and verify tokens show in the wider region only. There a tree
        counts, and a chain only where the narrow region showed nothing: drafters, too, are handed
        tokens and look for prefixes.
        """
        wide = follow_logits(sampling, self.receivers, engine.classes, decisions=True)
        narrow = Matches(sampling, self.receivers, logits.tainted)
        broad = Matches(sampling, self.receivers, wide.tainted)
        found: list[tuple[Reached, Hit]] = []
        wider: list[tuple[Reached, set[str]]] = []
        for reached in sampling.functions:
            names, more = logits.tainted.get(reached), wide.tainted.get(reached)
            if names:
                held = narrow.held(reached)
                hits = self.apply(Scope.LOGITS, reached, names, held=held)
                found += [(reached, hit) for hit in hits]
            if more and more != names:
                wider.append((reached, more))
        only = StageVerdict.TREE if found else None
        for reached, names in wider:
            hits = self.apply(Scope.LOGITS, reached, names, only, held=broad.held(reached))
            found += [(reached, hit) for hit in hits]
        hits = [hit for _, hit in found]
        drafters = Drafters(sampling, self.receivers, logits, engine.classes)
        beside = self._beside(engine, sampling, wide.over(logits), found)
        return [*hits, *beside, *self._drafting(sampling, drafters, hits)]

    def _beside(
        self, engine: Engine, sampling: Reach, region: Region, found: list[tuple[Reached, Hit]]
    ) -> Iterator[Hit]:
        """Ways past a chain that was found, and decorators around it that cannot be followed."""
        hits = [hit for _, hit in found]
        yield from self._without_verifier(engine, sampling, found)
        if not supports(hits, Stage.VERIFICATION, StageVerdict.LINEAR):
            return
        places = [
            (reached, range(hit.finding.line, hit.finding.end_line + 1)) for reached, hit in found
        ]
        replaced = self.attached.substitutes
        for way in unexplained(sampling, self.receivers, region, engine.classes, places, replaced):
            does = "cannot be followed" if way.opaque else "is a way that no rule explains"
            yield _unknown(way, Stage.VERIFICATION, f"takes what the target said and {does}")
        chains = {one: None for reached, _ in found for one in reached.chain()}
        for call in opaque_decorators(self.program, chains, self.missing):
            way = Way(call.file, call.line, call.text)
            yield _unknown(way, Stage.VERIFICATION, "wraps it and cannot be followed")

    def _without_verifier(
        self, engine: Engine, sampling: Reach, found: list[tuple[Reached, Hit]]
    ) -> Iterator[Hit]:
        """Runners of platforms from whose step no call leads to a verifier that was found."""
        nodes = {id(reached.function.node) for reached, _ in found}
        for cls in engine.brought:
            entries = [
                one
                for one in sampling.functions
                if one.via is None and one.receiver is not None and one.receiver.key == cls.key
            ]
            below = sampling.below(entries)
            if not any(id(one.function.node) in nodes for one in below):
                does = "is the runner of a platform, in whose step no rule found a verifier"
                way = Way(cls.module.path, cls.node.lineno, cls.node.name)
                yield _unknown(way, Stage.VERIFICATION, does)

    def _drafting(self, sampling: Reach, drafters: Drafters, verified: list[Hit]) -> list[Hit]:
        """How the engine drafts: asked of what is reached from where it verifies.

        An engine without speculation may lie beside one with it, and loop over steps as well.
        """
        entries = {hit.calls[0].symbol for hit in verified if hit.calls}
        hits: list[Hit] = []
        known: list[Reached] = []
        for reached in drafters:
            if not entries or reached.entry.function.symbol in entries:
                # Once one was shown to draft chains, the others are asked for trees only.
                shown = supports(hits, Stage.DRAFTING, StageVerdict.LINEAR)
                only = StageVerdict.TREE if shown else None
                found = self.apply(Scope.DRAFTING, reached, only=only)
                tree = supports(found, Stage.DRAFTING, StageVerdict.TREE)
                if not tree or drafters.keeps(reached):
                    known += [reached] if found else []
                    hits += found
        if supports(hits, Stage.DRAFTING, StageVerdict.TREE):
            return hits
        for way in drafted_beside(sampling, self.receivers, known, sampling.above(known)):
            hits.append(_unknown(way, Stage.DRAFTING, "may draft in its place"))
        return hits

    def _wider(self, engine: Engine, walks: list[Hit]) -> list[Hit]:
        """What a step reaches if it is followed into attention and cache management as well."""
        program = self.program.with_attention()
        wider = Examiner(program, Receivers(program), self.edited, self.missing)
        package = engine.classes[0].module.name.partition(".")[0]
        attached = attach(program, wider.receivers, self.attached.started, package)
        layers = list(layer_wraps(program, wider.receivers, attached.wraps, package))
        for caller, wrap in layers:
            wider.receivers.wrappers.put(caller, wrap)
        reach = Reach(program, wider.receivers)
        reach.run(_again(program, [*engine.sampling, *engine.forward]))
        files = {*self.edited, *(caller.module.path for caller, _ in layers)}
        reach.run_wrappers(wrapped_attention(program, wider.receivers, files))
        hits = tree_masks(program, reach, wider.receivers, wider.apply)
        if walks:
            hits += tree_commits(reach, wider.receivers, wider.apply, walks)
        self.failures.update(wider.failures | program.failures)
        return hits

    def _first(self, functions: Iterable[Reached], scope: Scope) -> list[Hit]:
        """The findings in the nearest function that has any: one place says how it is done."""
        return next((hits for reached in functions if (hits := self.apply(scope, reached))), [])

    def apply(
        self,
        scope: Scope,
        reached: Reached,
        logits: Iterable[str] = (),
        only: StageVerdict | None = None,
        *,
        held: Held = frozenset,
    ) -> list[Hit]:
        """The findings of the rules of one scope in one function; `only` those for a verdict.

        `held` gives what else the rules ask about: see `FunctionView`.
        """
        function = reached.function
        outline = self.receivers.survey(function).outline
        names = frozenset(logits)
        hits: list[Hit] = []
        for rule in _rules_of(scope):
            if only not in {None, rule.supports} or not rule.gate(outline):
                continue
            if not rule.in_loops or outline.recursive or outline.loop_names & names:
                found = self._found(rule, function, names, held)
                hits += [make_hit(rule, reached, finding) for finding in found]
        return hits

    def _found(
        self,
        rule: Rule,
        function: FunctionRef,
        logits: frozenset[str],
        held: Held,
    ) -> list[Finding]:
        beside = held() if rule.scope in _ASKS_BESIDE else None
        key = (rule.name, id(function.node), logits, beside)
        if key not in self._findings:
            self._findings[key] = self._look(rule, function, logits, held)
        return self._findings[key]

    def _defines(self, function: FunctionRef, name: str) -> bool:
        scope = self.receivers.scope(function, None)
        called = ast.parse(name, mode="eval").body
        return isinstance(self.receivers.resolve(scope, called), FunctionRef)

    def _look(
        self,
        rule: Rule,
        function: FunctionRef,
        logits: frozenset[str],
        held: Held,
    ) -> list[Finding]:
        if self._view is None or self._view.node is not function.node:
            self._view = FunctionView(
                function.module.source,
                function.node,
                function.symbol,
                defines=partial(self._defines, function),
            )
        self._view.logits, self._view.held = logits, held
        try:
            return list(rule.find(self._view))
        except cst.ParserSyntaxError as error:
            reason = f"libcst cannot parse {function.symbol}: {error.message}"
            self.failures[function.module.path] = reason
            return []


def _unknown(way: Way, stage: Stage, does: str) -> Hit:
    said = f"`{way.text}` at {way.file}:{way.line} {does}"
    finding = Finding(way.line, 1, way.line, said)
    return Hit(OPAQUE, stage, StageVerdict.UNKNOWN, way.file, way.text, finding, way.text, ())


def _again(
    program: Program, entries: Iterable[tuple[FunctionRef, ClassRef | None]]
) -> Iterator[tuple[FunctionRef, ClassRef | None]]:
    """The same entry methods in another reading of the same files."""
    for function, receiver in entries:
        module = program.module(receiver.module.name) if receiver else None
        cls = program.resolve(module, receiver.node.name) if module and receiver else None
        if isinstance(cls, ClassRef):
            method = program.method(cls, function.node.name)
            if method is not None:
                yield method, cls


@cache
def _rules_of(scope: Scope) -> tuple[Rule, ...]:
    return tuple(rule for rule in all_rules() if rule.scope is scope)


def unique(hits: Iterable[Hit]) -> list[Hit]:
    """Each place once per rule: a method may be reached through several receivers."""
    found: dict[tuple[str, str, int], Hit] = {}
    for hit in hits:
        found.setdefault((hit.rule, hit.file, hit.finding.line), hit)
    return list(found.values())


def supports(hits: Iterable[Hit], stage: Stage, verdict: StageVerdict) -> list[Hit]:
    """The hits that argue for a verdict on a stage."""
    return [hit for hit in hits if hit.stage is stage and hit.supports is verdict]


def functions_of(tree: ast.AST) -> Iterator[FunctionNode]:
    """Every function of a module, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
