"""From findings to verdicts: pure, and the only place that says what proves what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .examine import Hit, supports, unique
from .result import (
    EnginePath,
    Evidence,
    PathResult,
    Stage,
    StageResult,
    StageVerdict,
    Verdict,
)

NAMES = {
    EnginePath.V0: "the V0 engine",
    EnginePath.V1: "the V1 model runner",
    EnginePath.V2: "the V2 model runner",
}
_UNPROVED = {
    Stage.DRAFTING: "no rule recognised how this path drafts",
    Stage.ATTENTION: "neither sequential positions nor an ancestors-only mask was recognised",
    Stage.VERIFICATION: "no rule recognised how this path accepts drafted tokens",
    Stage.COMMIT: "what verification needs here is unknown",
}


@dataclass(slots=True)
class Judge:
    """Turns findings into evidence with running numbers, and into stage and path verdicts."""

    evidence: list[Evidence] = field(default_factory=list)

    def path(
        self, path: EnginePath, default: bool | None, hits: list[Hit], masks: list[Hit]
    ) -> PathResult:
        """The verdict on one engine path: what its verification does."""
        # A mask of a backend has something to mask only where trees are drafted or verified.
        trees = any(
            supports(hits, stage, StageVerdict.TREE)
            for stage in (Stage.DRAFTING, Stage.VERIFICATION)
        )
        every = unique([*masks, *hits] if trees else hits)
        stages = {
            stage: self._either(path, stage, every)
            for stage in (Stage.DRAFTING, Stage.ATTENTION, Stage.VERIFICATION)
        }
        verification = stages[Stage.VERIFICATION]
        stages[Stage.COMMIT] = self._commit(path, every, verification.verdict)
        verdict = _path_verdict(verification.verdict)
        return PathResult(path, default, verdict, _sentence(path, verdict, stages), stages)

    def _either(self, path: EnginePath, stage: Stage, hits: list[Hit]) -> StageResult:
        """`tree` where something shows it, else `linear` where something shows that."""
        for verdict in (StageVerdict.TREE, StageVerdict.LINEAR):
            found = supports(hits, stage, verdict)
            beside = supports(hits, stage, StageVerdict.UNKNOWN)
            if found and verdict is StageVerdict.LINEAR and beside:
                return self._undecided(path, found, beside)
            if found:
                return StageResult(verdict, self._cite(path, found), found[0].finding.message)
        beside = supports(hits, stage, StageVerdict.UNKNOWN)
        reason = "; ".join([_UNPROVED[stage], *(hit.finding.message for hit in beside[:1])])
        return StageResult(StageVerdict.UNKNOWN, (), reason)

    def _undecided(self, path: EnginePath, found: list[Hit], beside: list[Hit]) -> StageResult:
        """A chain was found, and so were other ways to the place that its result goes to."""
        first, *more = beside
        reason = f"a chain was found, but {first.finding.message}"
        if more:
            places = _listed([f"{hit.file}:{hit.finding.line}" for hit in more[:3]])
            reason += f"; so it is at {places}"
        return StageResult(StageVerdict.UNKNOWN, self._cite(path, found), reason)

    def _commit(self, path: EnginePath, hits: list[Hit], verification: StageVerdict) -> StageResult:
        if verification is StageVerdict.LINEAR:
            reason = "an accepted prefix of a chain already lies in contiguous slots"
            return StageResult(StageVerdict.ABSENT, (), reason)
        if verification is StageVerdict.UNKNOWN:
            return StageResult(StageVerdict.UNKNOWN, (), _UNPROVED[Stage.COMMIT])
        found = supports(hits, Stage.COMMIT, StageVerdict.TREE)
        if found:
            reason = found[0].finding.message
            return StageResult(StageVerdict.TREE, self._cite(path, found), reason)
        reason = "nothing was found that moves the accepted path's rows to contiguous slots"
        return StageResult(StageVerdict.ABSENT, (), reason)

    def _cite(self, path: EnginePath, hits: Iterable[Hit]) -> tuple[str, ...]:
        cited = []
        for hit in hits:
            name = f"E{len(self.evidence) + 1}"
            self.evidence.append(_evidence(name, path, hit))
            cited.append(name)
        return tuple(cited)


def _evidence(name: str, path: EnginePath, hit: Hit) -> Evidence:
    finding = hit.finding
    return Evidence(
        name,
        hit.rule,
        hit.stage,
        hit.supports,
        hit.file,
        finding.line,
        finding.end_line,
        finding.column,
        hit.symbol,
        hit.quote,
        finding.message,
        path,
        hit.calls,
    )


def _path_verdict(verification: StageVerdict) -> Verdict:
    if verification is StageVerdict.TREE:
        return Verdict.TREE
    return Verdict.LINEAR if verification is StageVerdict.LINEAR else Verdict.UNKNOWN


def _sentence(path: EnginePath, verdict: Verdict, stages: Mapping[Stage, StageResult]) -> str:
    name = NAMES[path]
    if verdict is Verdict.UNKNOWN:
        return f"How {name} verifies drafts could not be proved either way."
    if verdict is Verdict.LINEAR:
        return f"{_capital(name)} verifies one chain{_although(stages)}."
    lacking = [
        stage.value
        for stage in (Stage.DRAFTING, Stage.ATTENTION, Stage.COMMIT)
        if stages[stage].verdict is not StageVerdict.TREE
    ]
    but = f"; no tree was proved for its {_listed(lacking)}" if lacking else ""
    return f"{_capital(name)} verifies a tree{but}."


def _although(stages: Mapping[Stage, StageResult]) -> str:
    drafts = stages[Stage.DRAFTING].verdict is StageVerdict.TREE
    masks = stages[Stage.ATTENTION].verdict is StageVerdict.TREE
    if drafts and masks:
        return ", although it can draft a tree and mask attention for it"
    if drafts:
        return ", although it can draft a tree"
    return ", although its attention can be masked for a tree" if masks else ""


def total(paths: tuple[PathResult, ...]) -> tuple[Verdict, str]:
    """The verdict on the install, and one sentence.

    `tree` as soon as one path verifies trees; `linear` only if every path was proved to verify a
    chain; otherwise `unknown`.
    """
    if not paths:
        return Verdict.UNKNOWN, "No engine path was found in this code, so nothing is proved."
    trees = [result for result in paths if result.verdict is Verdict.TREE]
    chains = [result for result in paths if result.verdict is Verdict.LINEAR]
    if trees:
        return Verdict.TREE, _tree_sentence(trees, chains)
    if len(chains) == len(paths):
        return Verdict.LINEAR, _chain_sentence(paths)
    unknown = [result for result in paths if result.verdict is Verdict.UNKNOWN]
    names = _listed([NAMES[result.path] for result in unknown])
    return Verdict.UNKNOWN, f"How {names} {_verb(unknown)} drafts could not be proved either way."


def _tree_sentence(trees: list[PathResult], chains: list[PathResult]) -> str:
    names = _listed([NAMES[result.path] for result in trees])
    said = f"{_capital(names)} {_verb(trees)} a tree"
    if chains:
        other = _listed([NAMES[result.path] for result in chains])
        said += f"; {other} {_verb(chains)} one chain"
        default = [result for result in chains if result.default]
        if default:
            said += f", and {NAMES[default[0].path]} is the default"
    return said + "."


def _chain_sentence(paths: tuple[PathResult, ...]) -> str:
    names = _listed([NAMES[result.path] for result in paths])
    said = f"{_capital(names)} {_verb(paths)} drafted tokens along one chain"
    drafts = any(result.stages[Stage.DRAFTING].verdict is StageVerdict.TREE for result in paths)
    if drafts:
        said += ", although a tree can be drafted"
    return said + ": only a prefix of one draft can be accepted."


def _verb(results: Iterable[PathResult]) -> str:
    return "verifies" if len(list(results)) == 1 else "verify"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
