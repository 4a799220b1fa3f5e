"""What the target sent, as data; nothing is judged here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .fields import Fields, garbage
from .options import RUNNERS
from .report import Check, Outcome


@dataclass(frozen=True, slots=True)
class Facts:
    """What is installed in the target."""

    python: str
    executable: str
    torch: str
    triton: str | None
    runtime: str | None
    location: str
    device: str
    cuda: bool


@dataclass(frozen=True, slots=True)
class Runner:
    """The model runner of all engines, and whether Triton's interpreter runs its kernels."""

    name: str
    interpreted: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """The best logit at a position, its lead over the second, and the second's token."""

    best: float
    lead: float
    second: int


@dataclass(frozen=True, slots=True)
class Truth:
    """Greedy decoding without speculation: tokens and gaps of every request."""

    lengths: tuple[int, ...]
    tokens: tuple[tuple[int, ...], ...]
    gaps: tuple[tuple[Gap, ...], ...]
    dtype: str
    model: str


@dataclass(frozen=True, slots=True)
class Pass:
    """Tokens that an engine gave after `offset` tokens of the truth; see the harness."""

    engine: str
    name: str
    offset: int
    tokens: tuple[tuple[int, ...], ...]
    free: bool
    silent: bool
    without: str | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """One timed stretch of an engine; `step_seconds` is None where no step had a whole batch."""

    seconds: float
    steps: int
    step_seconds: float | None
    verifications: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Ended:
    """What was counted in one engine."""

    name: str
    role: str
    budget: int
    eager: bool
    block: int
    start_seconds: float
    cached: int
    mixed: int
    preemptions: int | None
    branches: int
    first_branch_length: float | None
    fallbacks: Mapping[str, int]
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """Logits of tree nodes beside those of their paths alone."""

    without: str | None
    trees: int
    nodes: int
    worst: float
    largest: float
    others: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was run: a model is missing, or else the prompts do not fit it."""

    missing: bool
    found: str
    expected: str


@dataclass(slots=True)
class Evidence:
    """All that was sent, in the order of arrival."""

    facts: Facts | None = None
    runner: Runner | None = None
    refusal: Refusal | None = None
    truth: Truth | None = None
    prompts: str = ""
    checks: dict[str, tuple[Check, ...]] = field(default_factory=dict)
    passes: list[Pass] = field(default_factory=list)
    engines: list[Ended] = field(default_factory=list)
    nodes: list[Nodes] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, event: Fields) -> None:
        """Take one event.

        Raises:
            FarSideError: it is not what was agreed on.
        """
        if kind == "facts":
            self.facts = _facts(event)
        elif kind == "runner":
            self.runner = _runner(event)
        elif kind == "refused":
            missing = event.text("what") == "target"
            self.refusal = Refusal(missing, event.text("found"), event.text("expected"))
        elif kind == "truth":
            self.truth = _truth(event)
        elif kind == "prompts":
            self.prompts = event.text("about")
        elif kind == "checks":
            self.checks[event.text("part")] = tuple(_check(one) for one in event.objects("checks"))
        elif kind == "pass":
            self.passes.append(_pass(event))
        elif kind == "engine":
            self.engines.append(_ended(event))
        elif kind == "nodes":
            self.nodes.append(_nodes(event))
        elif kind == "failed":
            # The first reason is the cause; what follows from it comes later.
            self.failures.setdefault(event.text("part"), event.text("reason"))
        else:
            raise garbage(f"an event of the unknown kind {kind!r:.40}")

    def engine(self, role: str) -> Ended | None:
        """The engine of a role that occurs once."""
        return next((engine for engine in self.engines if engine.role == role), None)


def _facts(event: Fields) -> Facts:
    return Facts(
        python=event.text("python"),
        executable=event.text("executable"),
        torch=event.text("torch"),
        triton=event.maybe_text("triton"),
        runtime=event.maybe_text("runtime"),
        location=event.text("location"),
        device=event.text("device"),
        cuda=event.flag("cuda"),
    )


def _runner(event: Fields) -> Runner:
    name = event.text("runner")
    if name not in RUNNERS:
        raise garbage(f"a model runner of the unknown name {name!r:.40}")
    return Runner(name, event.flag("interpreted"))


def _check(event: Fields) -> Check:
    outcome = Outcome.PASSED if event.flag("passed") else Outcome.FAILED
    return Check(event.text("name"), outcome, event.text("detail"))


def _truth(event: Fields) -> Truth:
    tokens, lengths = event.table("tokens"), event.wholes("lengths")
    lines = event.data.get("gaps")
    try:
        gaps = tuple(
            tuple(Gap(float(best), float(lead), int(second)) for best, lead, second in line)
            for line in lines or ()
        )
    except (TypeError, ValueError):
        raise garbage("gaps that are no lists of three numbers") from None
    if [len(line) for line in gaps] != [len(line) for line in tokens] or len(lengths) != len(gaps):
        raise garbage("a truth whose tokens and gaps do not belong together")
    return Truth(lengths, tokens, gaps, event.text("dtype"), event.text("model"))


def _pass(event: Fields) -> Pass:
    return Pass(
        engine=event.text("engine"),
        name=event.text("name"),
        offset=event.whole("offset"),
        tokens=event.table("tokens"),
        free=event.flag("free"),
        silent=event.flag("silent"),
        without=event.maybe_text("without"),
    )


def _ended(event: Fields) -> Ended:
    counters = event.inner("counters")
    return Ended(
        name=event.text("name"),
        role=event.text("role"),
        budget=event.whole("budget"),
        eager=event.flag("eager"),
        block=event.whole("block"),
        start_seconds=event.number("start_seconds"),
        cached=event.whole("cached"),
        mixed=event.whole("mixed"),
        preemptions=event.maybe_whole("preemptions"),
        branches=counters.whole("branches") if counters else 0,
        first_branch_length=counters.number("acceptance_length_chain") if counters else None,
        fallbacks=counters.counts("fallbacks") if counters else {},
        stretches=tuple(_stretch(one) for one in event.objects("stretches")),
    )


def _stretch(event: Fields) -> Stretch:
    return Stretch(
        seconds=event.number("seconds"),
        steps=event.whole("steps"),
        step_seconds=event.maybe_number("step_seconds"),
        verifications=event.whole("verifications"),
        accepted=event.whole("accepted"),
    )


def _nodes(event: Fields) -> Nodes:
    return Nodes(
        without=event.maybe_text("without"),
        trees=event.whole("trees"),
        nodes=event.whole("nodes"),
        worst=event.number("worst"),
        largest=event.number("largest"),
        others=event.whole("others"),
    )
