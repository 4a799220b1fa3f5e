"""Compare tokens with greedy decoding: exactly in float32, else by how close the target was.

In other types a forward of another width rounds differently, so that of two tokens whose logits
are all but equal either may win. A divergence is a near tie if the target's best logit led the
second by no more than a few units in the last place, or by no more than where the *stock* chain
of the same drafter left greedy decoding on the same prompts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..evidence import Pass, Truth

# Distance of neighbouring numbers of a type, as a share of the number.
UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
UNITS = 4


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a request first left greedy decoding.

    Attributes:
        position: in the request's continuation.
        lead: of the target's best logit over its second, there.
        best: that best logit.
    """

    engine: str
    name: str
    request: int
    free: bool
    position: int
    lead: float
    best: float

    def __str__(self) -> str:
        """One line."""
        where = f"{self.engine}, {self.name}: request {self.request + 1}, token {self.position + 1}"
        return f"{where}: best logit {self.best:.3g} leads by {self.lead:.2g}"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a divergence is judged.

    Attributes:
        dtype: of the target.
        stock: the widest lead at which the stock chain diverged; 0 if it did not.
    """

    dtype: str
    stock: float

    @property
    def exact(self) -> bool:
        """Whether every token has to be equal."""
        return self.dtype not in UNIT

    def is_tie(self, one: Divergence) -> bool:
        """Whether arithmetic excuses the divergence."""
        if self.exact:
            return False
        return one.lead <= max(self.stock, UNITS * UNIT[self.dtype] * abs(one.best))

    def sentence(self) -> str:
        """The rule in words."""
        if self.exact:
            return f"In {self.dtype}, every token has to be that of greedy decoding."
        share = f"{UNITS} units in the last place of {self.dtype} ({UNITS * UNIT[self.dtype]:.1%})"
        stock = (
            f"or {self.stock:.2g}, the widest at which the stock chain diverged on these prompts"
            if self.stock
            else "and the stock chain did not diverge on these prompts"
        )
        return (
            "A divergence from greedy decoding is a near tie where the target's best logit leads "
            f"its second by at most {share} of the best, {stock}; any other is a failure."
        )


def rule_of(truth: Truth, passes: Iterable[Pass]) -> Rule:
    """The rule for a target, with what its stock chain did."""
    stock = [pass_ for pass_ in passes if pass_.engine == "chain"]
    widest = max((one.lead for one in diverged(truth, stock)), default=0.0)
    return Rule(truth.dtype, widest)


def diverged(truth: Truth, passes: Iterable[Pass]) -> list[Divergence]:
    """Where each request of each pass first left greedy decoding, if it did."""
    found = []
    for pass_ in passes:
        for line, tokens in enumerate(pass_.tokens):
            one = _first(truth, pass_, line, tokens)
            if one is not None:
                found.append(one)
    return found


def compared(passes: Iterable[Pass]) -> int:
    """Tokens in all."""
    return sum(len(tokens) for pass_ in passes for tokens in pass_.tokens)


def _first(truth: Truth, pass_: Pass, line: int, tokens: tuple[int, ...]) -> Divergence | None:
    count = len(truth.tokens)
    free = pass_.free and line == count
    request = count - 1 if free else line
    if request >= count:
        return Divergence(pass_.engine, pass_.name, line, free, 0, float("inf"), 0.0)
    wanted = truth.tokens[request][pass_.offset :]
    for place, token in enumerate(tokens):
        if place >= len(wanted) or token != wanted[place]:
            at = min(pass_.offset + place, len(truth.gaps[request]) - 1)
            gap = truth.gaps[request][at]
            return Divergence(pass_.engine, pass_.name, request, free, at, gap.lead, gap.best)
    if not tokens:
        return Divergence(pass_.engine, pass_.name, request, free, 0, float("inf"), 0.0)
    return None
